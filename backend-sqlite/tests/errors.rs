//! What errors say, and which of them are conflicts.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test states what it expects"
)]

use std::error::Error;
use std::fmt;

use onceonly::{ClaimStore, StoreError, StoreErrorKind};
use onceonly_sqlite::rusqlite::{self, Connection};
use onceonly_sqlite::{SqliteConfig, SqliteStore};

/// A team's error around SQLite's.
#[derive(Debug)]
struct Wrapped(Box<dyn Error + 'static>);

impl fmt::Display for Wrapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("crediting failed")
    }
}

impl Error for Wrapped {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.0)
    }
}

fn busy(directory: &tempfile::TempDir) -> rusqlite::Error {
    let path = directory.path().join("other.db");
    let holder = Connection::open(&path).unwrap();
    holder
        .execute_batch("BEGIN IMMEDIATE; CREATE TABLE x (y)")
        .unwrap();
    let other = Connection::open(&path).unwrap();
    other.busy_timeout(std::time::Duration::ZERO).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap_err()
}

/// The error of a reader that wants to write after another wrote, in a file with a log.
fn busy_snapshot(directory: &tempfile::TempDir) -> rusqlite::Error {
    let path = directory.path().join("snapshot.db");
    let writer = Connection::open(&path).unwrap();
    writer
        .pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))
        .unwrap();
    writer.execute_batch("CREATE TABLE x (y)").unwrap();
    let reader = Connection::open(&path).unwrap();
    reader.execute_batch("BEGIN; SELECT * FROM x").unwrap();
    writer.execute_batch("INSERT INTO x VALUES (1)").unwrap();
    reader
        .execute_batch("INSERT INTO x VALUES (2)")
        .unwrap_err()
}

#[tokio::test]
async fn locks_of_others_are_conflicts_at_any_depth() {
    let store = SqliteStore::in_memory().await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let snapshot = busy_snapshot(&directory);
    assert_eq!(
        snapshot.sqlite_extended_error_code(),
        Some(rusqlite::ffi::SQLITE_BUSY_SNAPSHOT)
    );
    for conflict in [busy(&directory), snapshot] {
        assert!(store.is_conflict(&conflict));
        assert!(store.is_conflict(&Wrapped(Box::new(Wrapped(Box::new(conflict))))));
    }
    assert!(store.is_conflict(&StoreError::new(StoreErrorKind::Conflict, "planned")));
}

#[tokio::test]
async fn errors_of_a_statement_are_no_conflicts() {
    let store = SqliteStore::in_memory().await.unwrap();
    let connection = Connection::open_in_memory().unwrap();
    connection
        .execute_batch("CREATE TABLE x (y UNIQUE); INSERT INTO x VALUES (1)")
        .unwrap();
    let unique = connection
        .execute("INSERT INTO x VALUES (1)", ())
        .unwrap_err();
    let missing = connection
        .execute("INSERT INTO nothing VALUES (1)", ())
        .unwrap_err();
    for error in [unique, missing, rusqlite::Error::QueryReturnedNoRows] {
        assert!(!store.is_conflict(&error), "{error}");
        assert!(!store.is_conflict(&Wrapped(Box::new(error))));
    }
    assert!(!store.is_conflict(&StoreError::new(StoreErrorKind::InFlight, "planned")));
}

#[tokio::test]
async fn secrets_in_statements_of_on_open_are_not_told() {
    let directory = tempfile::tempdir().unwrap();
    let error = SqliteConfig::new(directory.path().join("world.db"))
        .on_open(|connection| connection.execute_batch("PRAGMA key = = 's3cret'"))
        .open()
        .await
        .unwrap_err();
    let mut told = format!("{error} {error:?}");
    let mut cause = error.source();
    while let Some(error) = cause {
        told = format!("{told} {error} {error:?}");
        cause = error.source();
    }
    assert!(!told.contains("s3cret"), "{told}");
    assert!(told.contains("on_open"), "{told}");
}
