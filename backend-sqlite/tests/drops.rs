//! Futures and transactions that are dropped half-way: the writer is never lost.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test states what it expects"
)]

use std::time::{Duration, Instant};

use onceonly::{ClaimFate, ClaimStore, Event, StoreErrorKind};
use onceonly_sqlite::rusqlite::Connection;
use onceonly_sqlite::{SqliteConfig, SqliteStore, SqliteTx};
use tokio::time::timeout;

const PATIENT: Duration = Duration::from_secs(30);
/// Counts for far longer than any test waits.
const ENDLESS: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
                       SELECT count(*) FROM n";

fn event(id: &str) -> Event {
    Event::new("drops", id).unwrap()
}

async fn store() -> SqliteStore {
    let store = SqliteStore::in_memory().await.unwrap();
    let outside = Connection::open(store.path()).unwrap();
    outside
        .execute_batch("CREATE TABLE ledger (x INTEGER) STRICT")
        .unwrap();
    store
}

async fn claim(store: &SqliteStore, id: &str) -> SqliteTx {
    store
        .claim(&event(id), PATIENT)
        .await
        .unwrap()
        .fresh()
        .unwrap()
}

fn rows(store: &SqliteStore) -> i64 {
    let outside = Connection::open(store.path()).unwrap();
    outside
        .query_row("SELECT count(*) FROM ledger", (), |row| row.get(0))
        .unwrap()
}

#[tokio::test]
async fn dropped_run_is_interrupted_rolled_back_and_frees_the_writer() {
    let store = store().await;
    let mut tx = claim(&store, "1").await;
    tx.execute("INSERT INTO ledger VALUES (1)", ()).unwrap();
    let endless = tx.run(|connection| connection.query_row(ENDLESS, (), |_| Ok(())));
    timeout(Duration::from_millis(50), endless)
        .await
        .unwrap_err();

    // The transaction is gone, though its value is still here.
    let started = Instant::now();
    let next = claim(&store, "1").await;
    assert!(started.elapsed() < Duration::from_secs(5));
    next.execute("INSERT INTO ledger VALUES (2)", ()).unwrap();

    tx.execute("INSERT INTO ledger VALUES (3)", ()).unwrap_err();
    tx.savepoint().unwrap_err();
    let gone = StoreErrorKind::TransactionEnded {
        claim: ClaimFate::Absent,
    };
    assert_eq!(tx.run(|_| ()).await.unwrap_err().kind(), gone);
    assert_eq!(store.commit(tx).await.unwrap_err().kind(), gone);
    store.commit(next).await.unwrap();
    assert_eq!(rows(&store), 1);
}

#[tokio::test]
async fn panic_in_run_goes_on_and_rolls_back() {
    let store = store().await;
    let running = tokio::spawn({
        let store = store.clone();
        async move {
            let mut tx = claim(&store, "1").await;
            tx.execute("INSERT INTO ledger VALUES (1)", ()).unwrap();
            tx.run(|_| panic!("planned")).await.map(|()| tx).map(drop)
        }
    });
    let panic = running.await.unwrap_err().into_panic();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"planned"));
    drop(claim(&store, "1").await);
    assert_eq!(rows(&store), 0);
}

#[tokio::test]
async fn run_gives_its_value_and_keeps_the_transaction() {
    let store = store().await;
    let mut tx = claim(&store, "1").await;
    for number in 0..5 {
        let insert = move |connection: &Connection| {
            connection.execute("INSERT INTO ledger VALUES (?1)", [number])
        };
        assert_eq!(tx.run(insert).await.unwrap().unwrap(), 1);
    }
    store.commit(tx).await.unwrap();
    assert_eq!(rows(&store), 5);
}

#[tokio::test]
async fn hundreds_of_dropped_claims_leave_the_writer_to_the_next() {
    let store = store().await;
    for round in 0..200_u32 {
        let claiming = store.clone();
        let task = tokio::spawn(async move { claim(&claiming, "1").await });
        for _ in 0..round % 7 {
            tokio::task::yield_now().await;
        }
        task.abort();
        // A task that was done in time still holds its transaction.
        drop(task);
        if round % 3 == 0 {
            drop(claim(&store, "1").await);
        }
    }
    let tx = claim(&store, "1").await;
    store.commit(tx).await.unwrap();
    assert_eq!(store.waiting(), 0);
}

#[tokio::test]
async fn forgotten_savepoint_and_nested_ones_do_not_harm_the_claim() {
    let store = store().await;
    let mut tx = claim(&store, "1").await;
    let mut outer = tx.savepoint().unwrap();
    outer.execute("INSERT INTO ledger VALUES (1)", ()).unwrap();
    let inner = outer.savepoint().unwrap();
    inner.execute("INSERT INTO ledger VALUES (2)", ()).unwrap();
    drop(inner);
    let inner = outer.savepoint().unwrap();
    inner.execute("INSERT INTO ledger VALUES (3)", ()).unwrap();
    inner.release().unwrap();
    outer.release().unwrap();
    tx.execute_batch("SAVEPOINT left_open; INSERT INTO ledger VALUES (4)")
        .unwrap();
    store.commit(tx).await.unwrap();
    assert_eq!(rows(&store), 3);
    assert!(
        store
            .claim(&event("1"), PATIENT)
            .await
            .unwrap()
            .is_duplicate()
    );
}

#[tokio::test]
async fn rollback_tells_when_apply_had_committed_the_claim() {
    let store = store().await;
    let tx = claim(&store, "1").await;
    tx.execute_batch("COMMIT; BEGIN").unwrap();
    let error = store.rollback(tx).await.unwrap_err();
    let durable = StoreErrorKind::TransactionEnded {
        claim: ClaimFate::Durable,
    };
    assert_eq!(error.kind(), durable);
    let tx = claim(&store, "2").await;
    tx.execute_batch("ROLLBACK").unwrap();
    store.rollback(tx).await.unwrap();
}

#[test]
fn transaction_outlives_its_runtime_and_store() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (path, tx) = runtime.block_on(async {
        let store = store().await;
        let tx = claim(&store, "1").await;
        (store.path().to_owned(), tx)
    });
    runtime.shutdown_background();
    tx.execute("INSERT INTO ledger VALUES (1)", ()).unwrap();
    assert!(path.exists());
    drop(tx);
    assert!(!path.exists());
}

#[test]
fn claim_without_a_free_blocking_thread_is_unavailable_in_time() {
    let directory = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .max_blocking_threads(1)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let store = SqliteConfig::new(directory.path().join("world.db"))
            .acquire_timeout(Duration::from_millis(200))
            .open()
            .await
            .unwrap();
        store.migrate().await.unwrap();
        store.check().await.unwrap();
        drop(claim(&store, "1").await);
        let (release, busy) = std::sync::mpsc::channel::<()>();
        tokio::task::spawn_blocking(move || busy.recv());
        let started = Instant::now();
        let error = store.claim(&event("1"), PATIENT).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error:?}");
        assert!(started.elapsed() < Duration::from_secs(1));
        drop(release);
        let tx = claim(&store, "1").await;
        store.commit(tx).await.unwrap();
    });
}
