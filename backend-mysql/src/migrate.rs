//! Bringing the schema up to date.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, Opts, Row};
use onceonly::{StoreError, StoreErrorKind};
use onceonly_migrations::{MYSQL, Migration};

use crate::check;
use crate::error::{self, NO_SUCH_TABLE, schema};
use crate::reply::{bytes, number};
use crate::statements::{quoted, text};

/// How long an instance waits for the others, in seconds.
const LOCK_WAIT: u32 = 60;

/// Applies what is missing, one instance at a time.
///
/// On a connection of its own: closing it releases the lock on every path, a dropped future's
/// included.
pub(crate) async fn run(opts: Opts, table: &str) -> Result<(), StoreError> {
    let address = error::address(&opts);
    let mut conn = Conn::new(opts)
        .await
        .map_err(|error| error::connecting(error, &address))?;
    let result = locked(&mut conn, table).await;
    let _ = conn.disconnect().await;
    result
}

async fn locked(conn: &mut Conn, table: &str) -> Result<(), StoreError> {
    conn.query_drop("SET autocommit = 1")
        .await
        .map_err(error::statement)?;
    let database: Option<Row> = query(conn, "SELECT DATABASE()").await?.into_iter().next();
    if database.is_none_or(|row| bytes(&row, 0).is_none()) {
        return Err(schema(
            "no database is selected: name it in the URL, mysql://user@host/database",
        ));
    }
    // At most 64 characters, and of the whole server.
    let lock = format!(
        "SELECT GET_LOCK(CONCAT('onceonly:', LEFT(SHA2(CONCAT(DATABASE(), '.', {}), 256), 40)), \
         {LOCK_WAIT})",
        text(table)
    );
    let got = query(conn, &lock).await?;
    if got.first().and_then(|row| number(row, 0)) != Some(1) {
        return Err(StoreError::new(
            StoreErrorKind::Unavailable,
            format!("another instance has been migrating {table} for {LOCK_WAIT} s"),
        ));
    }
    apply(conn, table).await
}

/// One row of the history.
struct Applied {
    version: i64,
    checksum: Vec<u8>,
    compatible_with: i64,
    finished: bool,
}

async fn apply(conn: &mut Conn, table: &str) -> Result<(), StoreError> {
    let history = quoted(&format!("{table}_migrations"));
    let applied = match read(conn, &history).await? {
        Some(applied) => applied,
        // Another tool made the table from the same files; check() says whether it fits.
        None if exists(conn, table).await? => return Ok(()),
        None => {
            let create = format!(
                "CREATE TABLE IF NOT EXISTS {history} (version INT UNSIGNED NOT NULL PRIMARY KEY, \
                 name VARCHAR(255) NOT NULL, checksum CHAR(64) NOT NULL, \
                 compatible_with INT UNSIGNED NOT NULL, \
                 applied_at DATETIME(6) NULL COMMENT 'UTC; NULL until it is finished') \
                 ENGINE = InnoDB"
            );
            run_statement(conn, &create).await?;
            Vec::new()
        }
    };
    for row in &applied {
        check::compatible(table, row.compatible_with)?;
    }
    for migration in MYSQL {
        let row = applied
            .iter()
            .find(|row| row.version == i64::from(migration.version()));
        match row {
            Some(row) if row.checksum != migration.checksum().as_bytes() => {
                return Err(schema(format!(
                    "migration {} ({}) is not the one that was applied to {table}: restore its \
                     file, or the checksum in {history}",
                    migration.version(),
                    migration.name()
                )));
            }
            Some(row) if row.finished => {}
            Some(_) => execute(conn, &history, table, migration, Start::Resumed).await?,
            None => execute(conn, &history, table, migration, Start::New).await?,
        }
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Start {
    New,
    /// An earlier call was interrupted: some of its statements took effect.
    Resumed,
}

async fn execute(
    conn: &mut Conn,
    history: &str,
    table: &str,
    migration: &Migration,
    start: Start,
) -> Result<(), StoreError> {
    if start == Start::New {
        let begun = format!(
            "INSERT INTO {history} (version, name, checksum, compatible_with, applied_at) \
             VALUES ({}, {}, {}, {}, NULL)",
            migration.version(),
            text(migration.name()),
            text(&migration.checksum()),
            migration.compatible_with(),
        );
        run_statement(conn, &begun).await?;
    }
    let sql = migration.sql_for(&quoted(table), table);
    for statement in statements(&sql) {
        match conn.query_drop(statement).await {
            Err(Error::Server(error)) if start == Start::Resumed && is_there(error.code) => {}
            result => result.map_err(error::statement)?,
        }
    }
    let done = format!(
        "UPDATE {history} SET applied_at = UTC_TIMESTAMP(6) WHERE version = {}",
        migration.version()
    );
    run_statement(conn, &done).await
}

/// A table, view, column or index that exists already, or is gone already.
const fn is_there(code: u16) -> bool {
    matches!(code, 1050 | 1060 | 1061 | 1091 | 1826)
}

/// `None`: there is no history.
async fn read(conn: &mut Conn, history: &str) -> Result<Option<Vec<Applied>>, StoreError> {
    let sql =
        format!("SELECT version, checksum, compatible_with, applied_at IS NOT NULL FROM {history}");
    let rows: Vec<Row> = match conn.query(sql).await {
        Err(Error::Server(error)) if error.code == NO_SUCH_TABLE => return Ok(None),
        result => result.map_err(error::statement)?,
    };
    Ok(Some(
        rows.iter()
            .map(|row| Applied {
                version: number(row, 0).unwrap_or_default(),
                checksum: bytes(row, 1).unwrap_or_default().to_vec(),
                compatible_with: number(row, 2).unwrap_or(i64::MAX),
                finished: number(row, 3) == Some(1),
            })
            .collect(),
    ))
}

async fn exists(conn: &mut Conn, table: &str) -> Result<bool, StoreError> {
    let sql = format!(
        "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() \
         AND TABLE_NAME = {}",
        text(table)
    );
    Ok(!query(conn, &sql).await?.is_empty())
}

async fn query(conn: &mut Conn, sql: &str) -> Result<Vec<Row>, StoreError> {
    conn.query(sql).await.map_err(error::statement)
}

async fn run_statement(conn: &mut Conn, sql: &str) -> Result<(), StoreError> {
    conn.query_drop(sql).await.map_err(error::statement)
}

/// The statements of a file, one by one, so that a resumed migration can pass over those that took
/// effect. Quoted names and comments may hold semicolons.
fn statements(sql: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let (mut start, mut quote, mut comment, mut last) = (0, None, false, ' ');
    for (at, c) in sql.char_indices() {
        match (quote, c) {
            _ if comment => comment = c != '\n',
            (Some(open), _) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '`' | '\'' | '"') => quote = Some(c),
            (None, '-') if last == '-' => comment = true,
            (None, ';') => {
                found.push(sql[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
        last = c;
    }
    found.push(sql[start..].trim());
    found.retain(|statement| !statement.is_empty());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_splits_into_its_statements() {
        let sql = "-- one; comment\nCREATE TABLE `a;b` (c INT COMMENT 'x;y');\n\nSELECT 1;\n";
        let found = statements(sql);
        assert_eq!(found.len(), 2);
        assert!(found[0].ends_with("(c INT COMMENT 'x;y')"));
        assert_eq!(found[1], "SELECT 1");
    }

    #[test]
    fn the_shipped_file_has_a_table_and_a_view() {
        let found = statements(MYSQL[0].sql());
        assert!(found[0].contains("CREATE TABLE") && found[1].contains("CREATE VIEW"));
        assert_eq!(found.len(), 2);
    }
}
