//! Brings the schema up to this version, inside one transaction.

use onceonly::{StoreError, StoreErrorKind};
use onceonly_migrations::{Migration, SQLITE};
use rusqlite::{Connection, OptionalExtension, params};

use crate::check::{Table, examine, missing, unfit};
use crate::error::failed;
use crate::statements::{Statements, history_table, quote};

/// A row of the history table: a migration that was applied by this version or another.
struct Applied {
    version: u32,
    checksum: String,
    compatible_with: u32,
}

/// Applies what is missing. A table that a team's own tool made is accepted as it is, if it fits.
pub(crate) fn apply(connection: &Connection, statements: &Statements) -> Result<(), StoreError> {
    let failure = |error| failed("migrating", error);
    let applied = history(connection, statements).map_err(failure)?;
    let table = examine(connection, &statements.table).map_err(failure)?;
    match (&applied, table) {
        (None, Table::Fit) => return Ok(()),
        (None, Table::Unfit(what)) => return Err(unfit(statements, &what)),
        (None, Table::Missing) => connection
            .execute_batch(&statements.create_history)
            .map_err(failure)?,
        (Some(applied), _) => {
            refuse_changed(applied)?;
            refuse_incompatible(applied)?;
        }
    }
    let applied = applied.unwrap_or_default();
    for migration in SQLITE {
        if applied.iter().all(|row| row.version != migration.version()) {
            run(connection, statements, migration).map_err(failure)?;
        }
    }
    require_fit(connection, statements)
}

/// What first use and `check()` ask: the table fits, and no newer version forbids this one.
pub(crate) fn require_compatible(
    connection: &Connection,
    statements: &Statements,
) -> Result<(), StoreError> {
    let applied =
        history(connection, statements).map_err(|error| failed("reading the history", error))?;
    refuse_incompatible(&applied.unwrap_or_default())?;
    require_fit(connection, statements)
}

fn require_fit(connection: &Connection, statements: &Statements) -> Result<(), StoreError> {
    match examine(connection, &statements.table) {
        Ok(Table::Fit) => Ok(()),
        Ok(Table::Missing) => Err(missing(statements)),
        Ok(Table::Unfit(what)) => Err(unfit(statements, &what)),
        Err(error) => Err(failed("checking the claim table", error)),
    }
}

fn history(
    connection: &Connection,
    statements: &Statements,
) -> rusqlite::Result<Option<Vec<Applied>>> {
    let exists: Option<i64> = connection
        .query_row(
            "SELECT 1 FROM main.sqlite_schema WHERE type = 'table' AND name = ?1 COLLATE NOCASE",
            [history_table(&statements.table)],
            |row| row.get(0),
        )
        .optional()?;
    if exists.is_none() {
        return Ok(None);
    }
    let mut rows = connection.prepare(&statements.history)?;
    let rows = rows.query_map((), |row| {
        Ok(Applied {
            version: row.get(0)?,
            checksum: row.get(1)?,
            compatible_with: row.get(2)?,
        })
    })?;
    rows.collect::<Result<_, _>>().map(Some)
}

fn run(
    connection: &Connection,
    statements: &Statements,
    migration: &Migration,
) -> rusqlite::Result<()> {
    let sql = migration.sql_for(&quote(&statements.table), &statements.table);
    connection.execute_batch(&sql)?;
    connection.execute(
        &statements.record,
        params![
            migration.version(),
            migration.name(),
            migration.checksum(),
            migration.compatible_with(),
        ],
    )?;
    Ok(())
}

fn refuse_changed(applied: &[Applied]) -> Result<(), StoreError> {
    let changed = SQLITE.iter().find(|migration| {
        applied
            .iter()
            .any(|row| row.version == migration.version() && row.checksum != migration.checksum())
    });
    match changed {
        None => Ok(()),
        Some(migration) => Err(StoreError::new(
            StoreErrorKind::Schema,
            format!(
                "migration {} ({}) was changed after it was applied; restore the released file, or \
                 its checksum in the history table",
                migration.version(),
                migration.name()
            ),
        )),
    }
}

/// A merely newer schema is fine: rolling deploys rely on it.
fn refuse_incompatible(applied: &[Applied]) -> Result<(), StoreError> {
    let newest = SQLITE.last().map_or(0, Migration::version);
    match applied.iter().find(|row| row.compatible_with > newest) {
        None => Ok(()),
        Some(row) => Err(StoreError::new(
            StoreErrorKind::Schema,
            format!(
                "migration {} needs a program with schema version {} or later, and this one has \
                 {newest}; upgrade onceonly-sqlite",
                row.version, row.compatible_with
            ),
        )),
    }
}
