//! Whether the claim table is one on which the contract holds.

use onceonly::{StoreError, StoreErrorKind};
use rusqlite::{Connection, OptionalExtension};

use crate::statements::Statements;

/// What stands under the claim table's name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Table {
    Missing,
    Fit,
    /// What is wrong, and the fix.
    Unfit(String),
}

/// The columns that the statements write: name, type, whether NOT NULL.
const COLUMNS: [(&str, &str, bool); 5] = [
    ("source", "TEXT", true),
    ("event_id", "TEXT", true),
    ("event_type", "TEXT", false),
    ("received_at", "INTEGER", true),
    ("claim_token", "BLOB", true),
];

pub(crate) fn missing(statements: &Statements) -> StoreError {
    StoreError::new(
        StoreErrorKind::Schema,
        format!(
            "the claim table {:?} is missing; run migrate() or apply migrations/sqlite/*.sql",
            statements.table
        ),
    )
}

pub(crate) fn unfit(statements: &Statements, what: &str) -> StoreError {
    StoreError::new(
        StoreErrorKind::Schema,
        format!("the claim table {:?} is unfit: {what}", statements.table),
    )
}

/// Looks at types, keys, indexes and triggers: whatever can make two events one, or fake a
/// duplicate.
pub(crate) fn examine(connection: &Connection, table: &str) -> rusqlite::Result<Table> {
    let kind: Option<(String, bool)> = connection
        .query_row(
            "SELECT type, strict FROM pragma_table_list \
             WHERE schema = 'main' AND name = ?1 COLLATE NOCASE",
            [table],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .optional()?;
    let wrong = match kind {
        None => return Ok(Table::Missing),
        Some((kind, _)) if kind != "table" => Some(format!("it is a {kind}; make it a table")),
        // Without STRICT a column may have numeric affinity, and '1', '01' and '1.0' are one key.
        Some((_, false)) => Some("it is not STRICT".to_owned()),
        Some((_, true)) => match wrong_column(connection, table)? {
            Some(wrong) => Some(wrong),
            None => match wrong_key(connection, table)? {
                Some(wrong) => Some(wrong),
                None => trigger(connection, table)?,
            },
        },
    };
    Ok(wrong.map_or(Table::Fit, |wrong| {
        Table::Unfit(format!("{wrong} (see migrations/sqlite/)"))
    }))
}

fn wrong_column(connection: &Connection, table: &str) -> rusqlite::Result<Option<String>> {
    // In a STRICT table the columns of the primary key are NOT NULL without saying so.
    let mut columns = connection.prepare(
        "SELECT name, type, \"notnull\" OR pk > 0, dflt_value IS NOT NULL OR hidden > 0 \
         FROM pragma_table_xinfo(?1, 'main')",
    )?;
    let columns: Vec<(String, String, bool, bool)> = columns
        .query_map([table], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        })?
        .collect::<Result<_, _>>()?;
    for (wanted, kind, not_null) in COLUMNS {
        let found = columns
            .iter()
            .find(|(name, ..)| name.eq_ignore_ascii_case(wanted));
        match found {
            None => return Ok(Some(format!("it has no column {wanted}"))),
            Some((_, found, ..)) if !found.eq_ignore_ascii_case(kind) => {
                return Ok(Some(format!("{wanted} is {found}, and must be {kind}")));
            }
            Some((_, _, found, _)) if *found != not_null => {
                let must = if not_null { "must" } else { "must not" };
                return Ok(Some(format!("{wanted} {must} be NOT NULL")));
            }
            Some(_) => {}
        }
    }
    let required = columns.iter().find(|(name, _, not_null, filled)| {
        *not_null
            && !*filled
            && !COLUMNS
                .iter()
                .any(|(known, ..)| name.eq_ignore_ascii_case(known))
    });
    Ok(required.map(|(name, ..)| format!("its column {name} is NOT NULL and needs a default")))
}

fn wrong_key(connection: &Connection, table: &str) -> rusqlite::Result<Option<String>> {
    let mut indexes = connection.prepare(
        "SELECT name, origin FROM pragma_index_list(?1, 'main') WHERE \"unique\" ORDER BY origin",
    )?;
    let indexes: Vec<(String, String)> = indexes
        .query_map([table], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    let mut has_key = false;
    for (index, origin) in indexes {
        if origin != "pk" {
            return Ok(Some(format!(
                "the unique index {index} can fake a duplicate; drop it, or make it not unique"
            )));
        }
        let mut columns = connection.prepare(
            "SELECT lower(name), coll FROM pragma_index_xinfo(?1, 'main') WHERE key ORDER BY seqno",
        )?;
        let columns: Vec<(Option<String>, String)> = columns
            .query_map([&index], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<Result<_, _>>()?;
        let exact = |(name, collation): &(Option<String>, String), wanted: &str| {
            name.as_deref() == Some(wanted) && collation == "BINARY"
        };
        has_key = matches!(&columns[..], [source, id]
            if exact(source, "source") && exact(id, "event_id"));
    }
    Ok((!has_key)
        .then(|| "its primary key must be (source, event_id) with BINARY collation".to_owned()))
}

fn trigger(connection: &Connection, table: &str) -> rusqlite::Result<Option<String>> {
    let trigger: Option<String> = connection
        .query_row(
            "SELECT name FROM (SELECT name, type, tbl_name FROM main.sqlite_schema \
             UNION ALL SELECT name, type, tbl_name FROM temp.sqlite_schema) \
             WHERE type = 'trigger' AND tbl_name = ?1 COLLATE NOCASE",
            [table],
            |row| row.get(0),
        )
        .optional()?;
    Ok(trigger.map(|name| format!("the trigger {name} can fake a duplicate; drop it")))
}
