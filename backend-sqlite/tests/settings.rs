//! Settings of the file and of connections: what is set, what is refused, what `apply` may change.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test states what it expects"
)]

use std::num::NonZeroU32;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use onceonly::{ClaimRecords, ClaimStore, Event, StoreErrorKind};
use onceonly_sqlite::rusqlite::types::ValueRef;
use onceonly_sqlite::rusqlite::{Connection, Row};
use onceonly_sqlite::{Journal, SqliteConfig, SqliteStore, SqliteTx, UnsafeSetting};

const PATIENT: Duration = Duration::from_secs(30);

fn event(id: &str) -> Event {
    Event::new("settings", id).unwrap()
}

async fn claim(store: &SqliteStore, id: &str) -> SqliteTx {
    store
        .claim(&event(id), PATIENT)
        .await
        .unwrap()
        .fresh()
        .unwrap()
}

fn pragma(connection: &Connection, name: &str) -> String {
    let value = |row: &Row<'_>| {
        Ok(match row.get_ref(0)? {
            ValueRef::Integer(number) => number.to_string(),
            text => text.as_str()?.to_owned(),
        })
    };
    connection.pragma_query_value(None, name, value).unwrap()
}

async fn migrated(path: &Path) -> SqliteStore {
    let store = SqliteStore::open(path).await.unwrap();
    store.migrate().await.unwrap();
    store
}

#[tokio::test]
async fn claims_are_written_with_a_log_and_full_syncs() {
    let directory = tempfile::tempdir().unwrap();
    let store = migrated(&directory.path().join("world.db")).await;
    let tx = claim(&store, "1").await;
    assert_eq!(pragma(&tx, "journal_mode"), "wal");
    assert_eq!(pragma(&tx, "synchronous"), "2");
    assert_eq!(pragma(&tx, "busy_timeout"), "0");
}

#[tokio::test]
async fn unsafe_settings_are_refused_unless_allowed_by_name() {
    let cases = [
        (
            "PRAGMA synchronous = NORMAL",
            UnsafeSetting::SynchronousNormal,
        ),
        ("PRAGMA synchronous = OFF", UnsafeSetting::SynchronousOff),
        (
            "PRAGMA journal_mode = MEMORY",
            UnsafeSetting::JournalInMemory,
        ),
    ];
    for (sql, setting) in cases {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("world.db");
        let config = || {
            SqliteConfig::new(&path)
                .journal(Journal::Keep)
                .on_open(move |connection| connection.query_row(sql, (), |_| Ok(())).or(Ok(())))
        };
        let store = config().open().await.unwrap();
        for error in [
            store.migrate().await.unwrap_err(),
            store.check().await.unwrap_err(),
        ] {
            assert_eq!(error.kind(), StoreErrorKind::Schema, "{sql}: {error}");
            let name = format!("{setting:?}");
            assert!(error.to_string().contains(&name), "{sql}: {error}");
        }
        let store = config().allow_unsafe(setting).open().await.unwrap();
        store.migrate().await.unwrap();
        let tx = claim(&store, "1").await;
        store.commit(tx).await.unwrap();
    }
}

#[tokio::test]
async fn rollback_journal_is_kept_and_a_reader_delays_the_commit() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("world.db");
    let store = SqliteConfig::new(&path)
        .journal(Journal::Keep)
        .acquire_timeout(Duration::from_millis(300))
        .open()
        .await
        .unwrap();
    store.migrate().await.unwrap();
    let reader = Connection::open(&path).unwrap();
    assert_eq!(pragma(&reader, "journal_mode"), "delete");

    let tx = claim(&store, "given up").await;
    reader
        .execute_batch("BEGIN; SELECT count(*) FROM processed_events")
        .unwrap();
    let error = store.commit(tx).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Conflict, "{error:?}");
    reader.execute_batch("COMMIT").unwrap();
    assert!(
        !store
            .is_claimed(event("given up").source(), event("given up").id())
            .await
            .unwrap()
    );

    let tx = claim(&store, "delayed").await;
    reader
        .execute_batch("BEGIN; SELECT count(*) FROM processed_events")
        .unwrap();
    let (committed, ()) = tokio::join!(store.commit(tx), async {
        tokio::task::yield_now().await;
        reader.execute_batch("COMMIT").unwrap();
    });
    committed.unwrap();
    let again = store.claim(&event("delayed"), PATIENT).await.unwrap();
    assert!(again.is_duplicate());
}

#[tokio::test]
async fn settings_that_apply_changed_do_not_reach_the_next_claim() {
    let directory = tempfile::tempdir().unwrap();
    let store = migrated(&directory.path().join("world.db")).await;
    let changes = [
        "PRAGMA query_only = ON",
        "PRAGMA busy_timeout = 60000",
        "PRAGMA locking_mode = EXCLUSIVE",
        "CREATE TEMP TABLE processed_events (source, event_id, event_type, received_at, claim_token)",
    ];
    for change in changes {
        let tx = claim(&store, "rolled back").await;
        let _ = tx.query_row(change, (), |_| Ok(()));
        drop(tx);
        let tx = claim(&store, change).await;
        assert_eq!(pragma(&tx, "query_only"), "0", "{change}");
        assert_eq!(pragma(&tx, "busy_timeout"), "0", "{change}");
        assert_eq!(pragma(&tx, "locking_mode"), "normal", "{change}");
        store.commit(tx).await.unwrap();
        let again = store.claim(&event(change), PATIENT).await.unwrap();
        assert!(again.is_duplicate(), "{change}");
    }
}

#[tokio::test]
async fn statement_that_apply_left_unfinished_does_not_reach_the_next_claim() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("world.db");
    let store = migrated(&path).await;
    let other = migrated(&path).await;
    let tx = claim(&store, "1").await;
    let mut statement = tx.prepare("SELECT 1 UNION ALL SELECT 2").unwrap();
    let mut rows = statement.query(()).unwrap();
    rows.next().unwrap();
    std::mem::forget(rows);
    std::mem::forget(statement);
    store.commit(tx).await.unwrap();
    let tx = claim(&other, "2").await;
    other.commit(tx).await.unwrap();
    let tx = claim(&store, "3").await;
    store.commit(tx).await.unwrap();
}

#[tokio::test]
async fn effects_in_an_attached_file_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let store = migrated(&directory.path().join("world.db")).await;
    let other = directory.path().join("other.db");
    let attach = format!("ATTACH '{}' AS other", other.display());
    let tx = claim(&store, "1").await;
    tx.execute_batch("CREATE TEMP TABLE scratch (x); INSERT INTO scratch VALUES (1)")
        .unwrap();
    store.commit(tx).await.unwrap();

    let tx = claim(&store, "2").await;
    tx.execute_batch(&format!("{attach}; CREATE TABLE other.effects (x)"))
        .unwrap();
    let error = store.commit(tx).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::CommitRefused, "{error:?}");
    assert!(error.to_string().contains("other"), "{error}");
    assert!(
        !store
            .is_claimed(event("2").source(), event("2").id())
            .await
            .unwrap()
    );
    let effects = Connection::open(&other).unwrap();
    let effects: i64 = effects
        .query_row("SELECT count(*) FROM sqlite_schema", (), |row| row.get(0))
        .unwrap();
    assert_eq!(effects, 0);
}

#[tokio::test]
async fn effects_in_an_attached_file_are_kept_where_both_have_rollback_journals() {
    let directory = tempfile::tempdir().unwrap();
    let config = SqliteConfig::new(directory.path().join("world.db")).journal(Journal::Keep);
    let store = config.open().await.unwrap();
    store.migrate().await.unwrap();
    let other = directory.path().join("other.db");
    let tx = claim(&store, "1").await;
    tx.execute_batch(&format!("ATTACH '{}' AS other", other.display()))
        .unwrap();
    tx.execute_batch("CREATE TABLE other.effects (x); INSERT INTO effects VALUES (1)")
        .unwrap();
    store.commit(tx).await.unwrap();
    let effects = Connection::open(&other).unwrap();
    let effects: i64 = effects
        .query_row("SELECT count(*) FROM effects", (), |row| row.get(0))
        .unwrap();
    assert_eq!(effects, 1);
}

#[tokio::test]
async fn committed_duplicates_do_not_queue_behind_the_writer() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("world.db");
    let store = SqliteConfig::new(&path)
        .readers(NonZeroU32::MIN)
        .open()
        .await
        .unwrap();
    store.migrate().await.unwrap();
    let tx = claim(&store, "done").await;
    store.commit(tx).await.unwrap();
    let open = claim(&store, "open").await;
    for _ in 0..10 {
        let again = store.claim(&event("done"), Duration::ZERO).await.unwrap();
        assert!(again.is_duplicate());
    }
    assert_eq!(store.waiting(), 0);
    store.commit(open).await.unwrap();
}

#[tokio::test]
async fn the_writer_is_given_in_the_order_of_asking() {
    let directory = tempfile::tempdir().unwrap();
    let store = migrated(&directory.path().join("world.db")).await;
    let open = claim(&store, "open").await;
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..20_u32 {
        let (asking, order) = (store.clone(), Arc::clone(&order));
        tasks.spawn(async move {
            let tx = claim(&asking, &number.to_string()).await;
            order.lock().unwrap().push(number);
            asking.commit(tx).await.unwrap();
        });
        while store.waiting() <= number {
            tokio::task::yield_now().await;
        }
    }
    drop(open);
    tasks.join_all().await;
    assert_eq!(*order.lock().unwrap(), (0..20).collect::<Vec<_>>());
}

#[tokio::test]
async fn database_in_memory_is_read_from_outside_and_goes_with_its_last_clone() {
    let store = SqliteStore::in_memory().await.unwrap();
    let path = store.path().to_owned();
    let clone = store.clone();
    let tx = claim(&store, "1").await;
    tx.execute_batch("CREATE TABLE ledger (x); INSERT INTO ledger VALUES (1)")
        .unwrap();
    let outside = Connection::open(&path).unwrap();
    let tables = "SELECT count(*) FROM sqlite_schema WHERE name = 'ledger'";
    let count = || -> i64 { outside.query_row(tables, (), |row| row.get(0)).unwrap() };
    assert_eq!(count(), 0);
    store.commit(tx).await.unwrap();
    assert_eq!(count(), 1);
    drop(store);
    assert!(path.exists());
    drop(clone);
    assert!(!path.exists());
}
