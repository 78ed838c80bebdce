//! Files and directories that are not as they should be: clear errors, and nothing claimed.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test states what it expects"
)]

use std::fs;
use std::path::Path;
use std::time::Duration;

use onceonly::{ClaimFate, ClaimStore, Event, HandleError, Handler, StoreError, StoreErrorKind};
use onceonly_sqlite::rusqlite::{Connection, ErrorCode};
use onceonly_sqlite::{SqliteConfig, SqliteStore};

const PATIENT: Duration = Duration::from_secs(30);

fn event(id: &str) -> Event {
    Event::new("bad input", id).unwrap()
}

async fn refused(path: impl AsRef<Path>, kind: StoreErrorKind, says: &str) -> StoreError {
    let error = SqliteStore::open(path).await.unwrap_err();
    assert_eq!(error.kind(), kind, "{error:?}");
    assert!(error.to_string().contains(says), "{error}");
    error
}

#[tokio::test]
async fn missing_directory_is_named_as_the_cause() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("missing").join("world.db");
    refused(
        &path,
        StoreErrorKind::Unavailable,
        "its directory must exist",
    )
    .await;
    refused(
        directory.path(),
        StoreErrorKind::Unavailable,
        "can't be opened",
    )
    .await;
}

#[tokio::test]
async fn read_only_file_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("world.db");
    SqliteStore::open(&path)
        .await
        .unwrap()
        .migrate()
        .await
        .unwrap();
    let mut permissions = fs::metadata(&path).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&path, permissions).unwrap();
    if fs::OpenOptions::new().append(true).open(&path).is_ok() {
        // Root may write to it all the same; SQLite's own read-only mark does as well.
        let store = SqliteConfig::new(&path)
            .on_open(|connection| connection.pragma_update(None, "query_only", true))
            .open()
            .await
            .unwrap();
        let error = store.claim(&event("1"), PATIENT).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error:?}");
        assert!(error.to_string().contains("read-only"), "{error}");
    } else {
        refused(&path, StoreErrorKind::Unavailable, "read-only").await;
    }
}

#[tokio::test]
async fn file_that_is_no_database_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("world.db");
    fs::write(&path, "certainly not a database ".repeat(100)).unwrap();
    refused(&path, StoreErrorKind::Schema, "not an SQLite database").await;
    assert!(fs::read_to_string(&path).unwrap().starts_with("certainly"));
}

#[tokio::test]
async fn corrupt_file_is_an_error_and_no_duplicate() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("world.db");
    SqliteStore::open(&path)
        .await
        .unwrap()
        .migrate()
        .await
        .unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let page = 4096;
    assert!(bytes.len() >= 2 * page);
    bytes[page..].fill(0xff);
    fs::write(&path, bytes).unwrap();
    let store = SqliteStore::open(&path).await.unwrap();
    let error = store.claim(&event("1"), PATIENT).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Other, "{error:?}");
    assert!(error.to_string().contains("corrupt"), "{error}");
}

#[tokio::test]
async fn names_that_sqlite_takes_for_memory_are_refused() {
    refused(":memory:", StoreErrorKind::Unsupported, "in_memory()").await;
    refused("", StoreErrorKind::Unsupported, "in_memory()").await;
}

#[tokio::test]
async fn names_with_any_character_are_only_files() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["file:x?mode=memory", "a b.db", "ü%20.db", "'\";--.db"] {
        let path = directory.path().join(name);
        let store = SqliteConfig::new(&path)
            .table("t\"; --'")
            .open()
            .await
            .unwrap();
        store.migrate().await.unwrap();
        let tx = store
            .claim(&event("1"), PATIENT)
            .await
            .unwrap()
            .fresh()
            .unwrap();
        store.commit(tx).await.unwrap();
        assert!(path.exists(), "{name}");
    }
}

#[tokio::test]
async fn full_disk_in_apply_rolls_back_and_the_next_delivery_processes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("world.db");
    let store = SqliteStore::open(&path).await.unwrap();
    store.migrate().await.unwrap();
    let handler = Handler::new(store);
    let fill = async |tx: &mut onceonly_sqlite::SqliteTx| {
        tx.execute_batch("CREATE TABLE big (data)")?;
        let pages: i64 = tx.pragma_query_value(None, "page_count", |row| row.get(0))?;
        tx.pragma_update_and_check(None, "max_page_count", pages + 2, |_| Ok(()))?;
        tx.execute("INSERT INTO big VALUES (zeroblob(1000000))", ())
    };
    match handler.handle(&event("1"), fill).await {
        Err(HandleError::Apply(error)) => {
            assert_eq!(error.sqlite_error_code(), Some(ErrorCode::DiskFull));
        }
        other => panic!("{other:?}"),
    }
    let hides = async |tx: &mut onceonly_sqlite::SqliteTx| {
        let _hidden = fill(tx).await;
        Ok::<_, std::convert::Infallible>(())
    };
    match handler.handle(&event("1"), hides).await {
        Err(HandleError::Store(error)) => assert_eq!(
            error.kind(),
            StoreErrorKind::TransactionEnded {
                claim: ClaimFate::Absent
            }
        ),
        other => panic!("{other:?}"),
    }
    let small =
        async |tx: &mut onceonly_sqlite::SqliteTx| tx.execute_batch("CREATE TABLE big (data)");
    let outcome = handler.handle(&event("1"), small).await.unwrap();
    assert!(!outcome.is_duplicate());
}

#[tokio::test]
async fn full_disk_at_the_claim_is_unavailable() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("world.db");
    SqliteStore::open(&path)
        .await
        .unwrap()
        .migrate()
        .await
        .unwrap();
    let store = SqliteConfig::new(&path)
        .on_open(|connection| {
            let pages: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
            connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))
        })
        .open()
        .await
        .unwrap();
    let mut number = 0;
    let error = loop {
        let id = format!("{number:0>200}");
        match store.claim(&event(&id), PATIENT).await {
            Ok(claim) => store.commit(claim.fresh().unwrap()).await.unwrap(),
            Err(error) => break error,
        }
        number += 1;
    };
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error:?}");
    assert!(error.to_string().contains("full"), "{error}");
    let count = Connection::open(&path).unwrap();
    let count: i64 = count
        .query_row("SELECT count(*) FROM processed_events", (), |row| {
            row.get(0)
        })
        .unwrap();
    assert_eq!(count, number);
    // It stays so, and it stays an error.
    let again = store
        .claim(&event(&format!("{number:0>200}")), PATIENT)
        .await
        .unwrap_err();
    assert_eq!(again.kind(), StoreErrorKind::Unavailable, "{again:?}");
}

#[test]
fn future_outside_a_runtime_is_an_error_and_no_panic() {
    let mut opening = Box::pin(SqliteStore::open("never.db"));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    // It has a deadline, and tokio's timer panics without a runtime; the store must ask before.
    match opening.as_mut().poll(&mut context) {
        std::task::Poll::Ready(Err(error)) => {
            assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error:?}");
        }
        other => panic!("{other:?}"),
    }
}
