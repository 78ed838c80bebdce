//! Opening a connection with the settings that the guarantees rest on.

use std::time::Duration;

use onceonly::{StoreError, StoreErrorKind};
use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;

use crate::config::{Journal, SqliteConfig};
use crate::error::{failed, is_busy, was_busy};
use crate::settings;

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Write,
    Read,
}

/// Opens connections to one file.
pub(crate) struct Connector {
    pub(crate) config: SqliteConfig,
    /// Removed with the last connection's owner, if the database is a throwaway.
    _directory: Option<TempDir>,
}

impl Connector {
    pub(crate) const fn new(config: SqliteConfig, directory: Option<TempDir>) -> Self {
        Self {
            config,
            _directory: directory,
        }
    }

    /// The first connection: makes the file if it is not there, and its journal if it is to be one.
    /// `None` when another connection holds the file's lock.
    pub(crate) fn create(&self) -> Result<Option<Connection>, StoreError> {
        self.refuse_special_names()?;
        none_if_busy(self.try_open(Role::Write, OpenFlags::SQLITE_OPEN_CREATE))
    }

    /// A further connection. A file that has gone in the meantime is not made anew.
    pub(crate) fn open(&self, role: Role) -> Result<Option<Connection>, StoreError> {
        let opened = none_if_busy(self.try_open(role, OpenFlags::empty()))?;
        if let Some(connection) = &opened {
            match settings::verify(connection, &self.config) {
                Err(error) if was_busy(&error) => return Ok(None),
                verified => verified?,
            }
        }
        Ok(opened)
    }

    fn try_open(&self, role: Role, create: OpenFlags) -> Result<Connection, Failure> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | create;
        let connection = Connection::open_with_flags(&self.config.path, flags)?;
        connection.busy_timeout(Duration::ZERO)?;
        connection.set_prepared_statement_cache_capacity(64);
        if connection.is_readonly("main")? {
            return Err(Failure::ReadOnly);
        }
        if self.config.journal == Journal::Wal {
            connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
        }
        connection.pragma_update(None, "synchronous", "FULL")?;
        // On macOS fsync leaves data in the drive's cache; elsewhere these two do nothing.
        connection.pragma_update(None, "fullfsync", true)?;
        connection.pragma_update(None, "checkpoint_fullfsync", true)?;
        if let Some(on_open) = &self.config.on_open {
            on_open(&connection).map_err(without_sql)?;
        }
        connection.busy_timeout(Duration::ZERO)?;
        if role == Role::Read {
            connection.pragma_update(None, "query_only", true)?;
        }
        Ok(connection)
    }

    /// SQLite takes these names for databases that no second connection can see.
    fn refuse_special_names(&self) -> Result<(), StoreError> {
        let path = self.config.path.as_os_str();
        if path.is_empty() || path == ":memory:" {
            return Err(StoreError::new(
                StoreErrorKind::Unsupported,
                "not a file's name; for a database in memory use SqliteStore::in_memory()",
            ));
        }
        Ok(())
    }
}

/// The text of a statement of the team's own may hold the key of an encrypting build.
fn without_sql(error: rusqlite::Error) -> rusqlite::Error {
    match error {
        rusqlite::Error::SqlInputError { error, .. } => {
            rusqlite::Error::SqliteFailure(error, Some("a statement of on_open failed".to_owned()))
        }
        error => error,
    }
}

enum Failure {
    Sqlite(rusqlite::Error),
    ReadOnly,
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

fn none_if_busy(opened: Result<Connection, Failure>) -> Result<Option<Connection>, StoreError> {
    match opened {
        Ok(connection) => Ok(Some(connection)),
        Err(Failure::Sqlite(error)) if is_busy(&error) => Ok(None),
        Err(Failure::Sqlite(error)) => Err(failed("opening the database", error)),
        Err(Failure::ReadOnly) => Err(StoreError::new(
            StoreErrorKind::Unavailable,
            "the database file is read-only; make the file and its directory writable",
        )),
    }
}
