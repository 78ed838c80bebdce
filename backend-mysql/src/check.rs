//! What would lose events or fake duplicates: the claim table and the server's settings.

use mysql_async::Row;
use onceonly::StoreError;
use onceonly_migrations::MYSQL;

use crate::config::UnsafeSetting;
use crate::connection::Connection;
use crate::error::schema;
use crate::proof::Nonce;
use crate::reply::bytes;
use crate::statements::{quoted, text};

/// Column, its type without the length, its least length.
const COLUMNS: [(&str, &str, u32); 5] = [
    ("source", "varbinary", 255),
    ("event_id", "varbinary", 255),
    ("event_type", "varbinary", 255),
    ("received_at", "datetime", 6),
    ("claim_token", "binary", 16),
];

/// The first finding, as an error that names its fix.
pub(crate) async fn run(
    connection: &mut Connection,
    table: &str,
    allowed: &[UnsafeSetting],
) -> Result<(), StoreError> {
    let nonce = Nonce::random();
    let reply = connection.conclude(&facts(table, nonce), nonce).await;
    let facts = Facts(reply.proven(nonce)?);
    if facts.of("database").all(|fact| fact[0].is_empty()) {
        return Err(schema(
            "no database is selected: name it in the URL, mysql://user@host/database",
        ));
    }
    check_table(&facts, table)?;
    check_settings(&facts, allowed)?;
    if facts.of("history").next().is_some() {
        check_version(connection, table).await?;
    }
    Ok(())
}

fn facts(table: &str, nonce: Nonce) -> String {
    let history = text(&format!("{table}_migrations"));
    let table = text(table);
    let here = format!("TABLE_SCHEMA = DATABASE() AND TABLE_NAME = {table}");
    [
        "SELECT 'database', DATABASE()".into(),
        format!(
            "SELECT 'table', ENGINE FROM information_schema.TABLES \
             WHERE {here} AND TABLE_TYPE = 'BASE TABLE'"
        ),
        format!(
            "SELECT 'column', COLUMN_NAME, COLUMN_TYPE FROM information_schema.COLUMNS WHERE {here}"
        ),
        format!(
            "SELECT 'unique', INDEX_NAME, GROUP_CONCAT(COLUMN_NAME ORDER BY SEQ_IN_INDEX), \
             MAX(SUB_PART) FROM information_schema.STATISTICS \
             WHERE {here} AND NON_UNIQUE = 0 GROUP BY INDEX_NAME"
        ),
        format!(
            "SELECT 'trigger', TRIGGER_NAME FROM information_schema.TRIGGERS \
             WHERE EVENT_OBJECT_SCHEMA = DATABASE() AND EVENT_OBJECT_TABLE = {table}"
        ),
        format!(
            "SELECT 'history', TABLE_NAME FROM information_schema.TABLES \
             WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = {history}"
        ),
        // Unlike @@, this says nothing about a variable that a version does not have.
        "SHOW GLOBAL VARIABLES WHERE Variable_name IN \
         ('innodb_flush_log_at_trx_commit', 'log_bin', 'sync_binlog', 'binlog_format')"
            .into(),
        "ROLLBACK AND NO CHAIN NO RELEASE".into(),
        format!("SELECT x'{nonce}'"),
    ]
    .join("; ")
}

/// Rows of text, each with its topic first, which of a setting is its name.
struct Facts(Vec<Row>);

impl Facts {
    fn of<'a>(&'a self, topic: &'a str) -> impl Iterator<Item = [String; 3]> + 'a {
        self.0.iter().filter_map(move |row| {
            let column = |index| {
                bytes(row, index).map_or_else(String::new, |b| String::from_utf8_lossy(b).into())
            };
            (column(0) == topic).then(|| [column(1), column(2), column(3)])
        })
    }

    fn setting(&self, name: &str) -> String {
        let value = self.of(name).next().map(|[value, ..]| value);
        value.unwrap_or_default()
    }
}

fn check_table(facts: &Facts, table: &str) -> Result<(), StoreError> {
    let Some([engine, ..]) = facts.of("table").next() else {
        return Err(schema(format!(
            "table {table} does not exist: run migrate() or apply migrations/mysql/*.sql"
        )));
    };
    if !engine.eq_ignore_ascii_case("InnoDB") {
        return Err(schema(format!(
            "table {table} is {engine}, which can't roll back: ALTER TABLE {table} ENGINE = InnoDB"
        )));
    }
    for (name, kind, least) in COLUMNS {
        let found = facts
            .of("column")
            .find(|[column, ..]| column.eq_ignore_ascii_case(name))
            .map(|[_, found, _]| found.to_ascii_lowercase())
            .unwrap_or_default();
        let length = found
            .strip_prefix(kind)
            .and_then(|rest| rest.strip_prefix('(')?.strip_suffix(')')?.parse().ok());
        if length.is_none_or(|length: u32| length < least) {
            let found = if found.is_empty() { "missing" } else { &found };
            return Err(schema(format!(
                "column {name} of {table} is {found}: make it {kind}({least}) as in \
                 migrations/mysql/*.sql, or ids are compared by other rules than byte for byte"
            )));
        }
    }
    let (primary, others): (Vec<_>, Vec<_>) =
        facts.of("unique").partition(|[name, ..]| name == "PRIMARY");
    let exact = |[_, columns, prefix]: &[String; 3]| {
        columns.eq_ignore_ascii_case("source,event_id") && prefix.is_empty()
    };
    if !primary.iter().any(exact) {
        return Err(schema(format!(
            "the primary key of {table} is not (source, event_id), so that it can't tell a \
             duplicate: make it so"
        )));
    }
    if let Some([name, ..]) = others.first() {
        return Err(schema(format!(
            "{table} has another unique index, {name}, which would refuse new events as \
             duplicates: drop it"
        )));
    }
    if let Some([name, ..]) = facts.of("trigger").next() {
        return Err(schema(format!(
            "{table} has a trigger, {name}, which can change or refuse claims: drop it"
        )));
    }
    Ok(())
}

fn check_settings(facts: &Facts, allowed: &[UnsafeSetting]) -> Result<(), StoreError> {
    let flush = facts.setting("innodb_flush_log_at_trx_commit");
    // 3 is MariaDB's: as 1, and one flush more.
    if !matches!(flush.as_str(), "1" | "3")
        && !allowed.contains(&UnsafeSetting::FlushLogAtTrxCommit)
    {
        return Err(schema(format!(
            "innodb_flush_log_at_trx_commit is {flush}, so that a power failure loses events that \
             were answered as processed: set it to 1, or allow \
             UnsafeSetting::FlushLogAtTrxCommit"
        )));
    }
    if !matches!(facts.setting("log_bin").as_str(), "1" | "ON") {
        return Ok(());
    }
    let sync = facts.setting("sync_binlog");
    if sync != "1" && !allowed.contains(&UnsafeSetting::SyncBinlog) {
        return Err(schema(format!(
            "sync_binlog is {sync} while the binary log is on, so that a power failure loses events \
             that were answered as processed: set it to 1, or allow UnsafeSetting::SyncBinlog"
        )));
    }
    if facts
        .setting("binlog_format")
        .eq_ignore_ascii_case("STATEMENT")
    {
        return Err(schema(
            "binlog_format is STATEMENT, which InnoDB refuses in READ COMMITTED: set it to ROW or \
             MIXED",
        ));
    }
    Ok(())
}

async fn check_version(connection: &mut Connection, table: &str) -> Result<(), StoreError> {
    let nonce = Nonce::random();
    let history = quoted(&format!("{table}_migrations"));
    let text = format!(
        "SELECT MAX(compatible_with) FROM {history}; ROLLBACK AND NO CHAIN NO RELEASE; \
         SELECT x'{nonce}'"
    );
    let rows = connection.conclude(&text, nonce).await.proven(nonce)?;
    let needed = rows.first().and_then(|row| crate::reply::number(row, 0));
    compatible(table, needed.unwrap_or(0))
}

/// Whether this version may run on a schema that says it needs `needed`.
pub(crate) fn compatible(table: &str, needed: i64) -> Result<(), StoreError> {
    let newest = MYSQL.last().map_or(0, |migration| migration.version());
    if needed > i64::from(newest) {
        return Err(schema(format!(
            "the schema of {table} needs a program for version {needed} of it and this one knows \
             {newest}: upgrade onceonly-mysql"
        )));
    }
    Ok(())
}
