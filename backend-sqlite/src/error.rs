//! From SQLite's result codes to the contract's kinds.

use std::error::Error;

use onceonly::{StoreError, StoreErrorKind};
use rusqlite::ErrorCode;
use rusqlite::ffi;

/// What failed before a COMMIT: nothing of it is durable.
pub(crate) fn failed(doing: &str, error: rusqlite::Error) -> StoreError {
    let (kind, fix) = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => (
            StoreErrorKind::Unavailable,
            "another connection holds the file locked",
        ),
        Some(ErrorCode::CannotOpen) => (
            StoreErrorKind::Unavailable,
            "the file can't be opened; its directory must exist and be writable",
        ),
        Some(ErrorCode::ReadOnly) => (
            StoreErrorKind::Unavailable,
            "the database is read-only; the file and its directory must be writable",
        ),
        Some(ErrorCode::PermissionDenied) => (
            StoreErrorKind::Unavailable,
            "no permission; the file and its directory must be writable",
        ),
        Some(ErrorCode::DiskFull) => (
            StoreErrorKind::Unavailable,
            "the disk or max_page_count is full; make room",
        ),
        Some(ErrorCode::SystemIoFailure) => {
            (StoreErrorKind::Unavailable, "the disk reported an error")
        }
        Some(ErrorCode::OutOfMemory) => (StoreErrorKind::Unavailable, "out of memory"),
        Some(ErrorCode::NotADatabase) => (
            StoreErrorKind::Schema,
            "the file is not an SQLite database, or is encrypted",
        ),
        Some(ErrorCode::DatabaseCorrupt) => (
            StoreErrorKind::Other,
            "the file is corrupt; restore a backup, or see https://sqlite.org/recovery.html",
        ),
        _ if is_missing_table(&error) => (
            StoreErrorKind::Schema,
            "a table is missing; run migrate() or apply migrations/sqlite/*.sql",
        ),
        _ => (StoreErrorKind::Other, "SQLite reported an error"),
    };
    StoreError::new(kind, format!("{doing}: {fix}")).with_source(error)
}

fn is_missing_table(error: &rusqlite::Error) -> bool {
    error.to_string().contains("no such table")
}

/// Another connection holds the lock that is needed: the same may succeed in a moment.
pub(crate) fn is_busy(error: &rusqlite::Error) -> bool {
    match error.sqlite_error() {
        Some(error) => {
            // The low byte of an extended code is its primary code. SQLITE_PROTOCOL is a race for
            // a write-ahead log. A plain SQLITE_LOCKED is a conflict inside the same connection,
            // which no repetition heals.
            matches!(
                error.extended_code & 0xff,
                ffi::SQLITE_BUSY | ffi::SQLITE_PROTOCOL
            ) || error.extended_code == ffi::SQLITE_LOCKED_SHAREDCACHE
        }
        None => false,
    }
}

/// Whether an error of ours is nothing but a lock that another connection held.
pub(crate) fn was_busy(error: &StoreError) -> bool {
    let source = error
        .source()
        .and_then(|source| source.downcast_ref::<rusqlite::Error>());
    source.is_some_and(is_busy)
}

/// Whether `error` or a source of it is a lock conflict of SQLite.
pub(crate) fn is_conflict(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.downcast_ref::<rusqlite::Error>().is_some_and(is_busy)
            || error
                .downcast_ref::<StoreError>()
                .is_some_and(|error| error.kind() == StoreErrorKind::Conflict)
        {
            return true;
        }
        cause = error.source();
    }
    false
}

pub(crate) fn in_flight(message: &'static str) -> StoreError {
    StoreError::new(StoreErrorKind::InFlight, message)
}

pub(crate) fn locked_elsewhere() -> StoreError {
    in_flight("another process held the file's write lock for all of the wait")
}
