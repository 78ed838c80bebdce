//! The settings that decide whether an acknowledged event outlives a power cut.

use onceonly::{StoreError, StoreErrorKind};
use rusqlite::Connection;

use crate::config::{Journal, SqliteConfig, UnsafeSetting};
use crate::error::failed;

/// Refuses settings that lose acknowledged events, unless they are allowed by name.
pub(crate) fn verify(connection: &Connection, config: &SqliteConfig) -> Result<(), StoreError> {
    let read = |error| failed("reading the settings", error);
    let synchronous: i64 = connection
        .pragma_query_value(Some("main"), "synchronous", |row| row.get(0))
        .map_err(read)?;
    match synchronous {
        0 if !config.allows(UnsafeSetting::SynchronousOff) => {
            return Err(unsafe_setting(
                "synchronous is OFF, and a power cut may corrupt the file; set it to FULL, or \
                 allow UnsafeSetting::SynchronousOff",
            ));
        }
        1 if !config.allows(UnsafeSetting::SynchronousNormal) => {
            return Err(unsafe_setting(
                "synchronous is NORMAL, and a power cut takes acknowledged events back; set it to \
                 FULL, or allow UnsafeSetting::SynchronousNormal",
            ));
        }
        _ => {}
    }
    let journal = journal_mode(connection, "main").map_err(read)?;
    if config.journal == Journal::Wal && journal != "wal" {
        return Err(unsafe_setting(
            "the journal is not a write-ahead log: the file system lacks shared memory, or \
             something changed it; use a local file system, or Journal::Keep",
        ));
    }
    if matches!(journal.as_str(), "memory" | "off")
        && !config.allows(UnsafeSetting::JournalInMemory)
    {
        return Err(unsafe_setting(
            "the journal is in memory or off, and a crash may corrupt the file; use Journal::Wal, \
             or allow UnsafeSetting::JournalInMemory",
        ));
    }
    let locking: String = connection
        .pragma_query_value(Some("main"), "locking_mode", |row| row.get(0))
        .map_err(read)?;
    if locking != "normal" {
        return Err(unsafe_setting(
            "locking_mode is EXCLUSIVE, which shuts all other connections out; set it to NORMAL",
        ));
    }
    Ok(())
}

pub(crate) fn journal_mode(connection: &Connection, database: &str) -> rusqlite::Result<String> {
    connection.pragma_query_value(Some(database), "journal_mode", |row| row.get(0))
}

fn unsafe_setting(message: &'static str) -> StoreError {
    StoreError::new(StoreErrorKind::Schema, message)
}
