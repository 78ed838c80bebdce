//! What becomes of connections and keys when futures and transactions are dropped.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test states what it expects"
)]

mod harness;

use std::time::{Duration, Instant};

use futures_util::FutureExt;
use harness::PostgresHarness;
use onceonly::{Claim, ClaimStore, Event, StoreErrorKind};
use onceonly_conformance::Harness;
use onceonly_postgres::{PostgresConfig, PostgresStore, PostgresTx};

const PATIENT: Duration = Duration::from_secs(30);

fn event(id: &str) -> Event {
    Event::new("drops", id).unwrap()
}

async fn fresh(store: &PostgresStore, id: &str) -> PostgresTx {
    let claim = store.claim(&event(id), PATIENT).await.unwrap();
    claim.fresh().unwrap()
}

/// A pool of one connection: whoever leaves it dirty or stuck is found out by the next borrower.
async fn alone(world: &PostgresHarness) -> PostgresStore {
    let config = PostgresConfig::new()
        .max_connections(1)
        .acquire_timeout(Duration::from_secs(5));
    world.open(config).await.unwrap()
}

async fn backend(store: &PostgresStore) -> i32 {
    let client = store.pool().get().await.unwrap();
    let row = client.query_one("SELECT pg_backend_pid()", &[]).await;
    row.unwrap().get(0)
}

#[tokio::test]
async fn connection_of_a_duplicate_is_clean_for_the_next_borrower() {
    let world = PostgresHarness::setup().await.unwrap();
    let store = alone(&world).await;
    let tx = fresh(&store, "e").await;
    store.commit(tx).await.unwrap();
    let before = backend(&store).await;
    for n in 0..50 {
        let claim = store.claim(&event("e"), PATIENT).await.unwrap();
        assert!(claim.is_duplicate());
        // ROLLBACK was sent and not awaited; what comes next runs outside of any transaction.
        let client = store.pool().get().await.unwrap();
        client
            .batch_execute("INSERT INTO ledger (account) VALUES ('borrower')")
            .await
            .unwrap();
        drop(client);
        assert_eq!(world.effects("borrower").await.unwrap(), n + 1);
    }
    assert_eq!(backend(&store).await, before, "the connection was kept");
    world.teardown().await.unwrap();
}

#[tokio::test]
async fn dropped_transaction_gives_its_connection_back_when_the_rollback_is_confirmed() {
    let world = PostgresHarness::setup().await.unwrap();
    let store = alone(&world).await;
    let before = backend(&store).await;
    for n in 0..20 {
        let mut tx = fresh(&store, &n.to_string()).await;
        world.effect(&mut tx, "acme").await.unwrap();
        drop(tx);
    }
    assert_eq!(backend(&store).await, before, "the connection was kept");
    assert_eq!(world.effects("acme").await.unwrap(), 0);
    world.teardown().await.unwrap();
}

#[tokio::test]
async fn statement_still_running_is_cancelled_by_rollback_and_the_key_is_free_at_once() {
    let world = PostgresHarness::setup().await.unwrap();
    let store = alone(&world).await;
    let before = backend(&store).await;
    let tx = fresh(&store, "e").await;
    let slow = tx.batch_execute("SELECT pg_sleep(60)");
    assert!(slow.now_or_never().is_none());
    let started = Instant::now();
    store.rollback(tx).await.unwrap();
    let other = world.open(PostgresConfig::new()).await.unwrap();
    drop(fresh(&other, "e").await);
    assert!(started.elapsed() < Duration::from_secs(3));
    assert_ne!(
        backend(&store).await,
        before,
        "a cancelled connection was pooled"
    );
    world.teardown().await.unwrap();
}

#[tokio::test]
async fn dropped_commit_is_unknown_and_its_connection_is_never_pooled() {
    let world = PostgresHarness::setup().await.unwrap();
    let store = alone(&world).await;
    for n in 0..20 {
        let id = n.to_string();
        let before = backend(&store).await;
        let mut tx = fresh(&store, &id).await;
        world.effect(&mut tx, &id).await.unwrap();
        assert!(store.commit(tx).now_or_never().is_none());
        let claim = store.claim(&event(&id), PATIENT).await.unwrap();
        let committed = u64::from(claim.is_duplicate());
        drop(claim);
        assert_eq!(world.effects(&id).await.unwrap(), committed);
        assert_ne!(backend(&store).await, before);
    }
    world.teardown().await.unwrap();
}

#[tokio::test]
async fn dropped_commit_behind_a_running_statement_frees_the_key() {
    let world = PostgresHarness::setup().await.unwrap();
    let store = alone(&world).await;
    let mut tx = fresh(&store, "e").await;
    world.effect(&mut tx, "acme").await.unwrap();
    let slow = tx.batch_execute("SELECT pg_sleep(60)");
    assert!(slow.now_or_never().is_none());
    let started = Instant::now();
    assert!(store.commit(tx).now_or_never().is_none());
    drop(fresh(&store, "e").await);
    assert!(started.elapsed() < Duration::from_secs(3));
    assert_eq!(world.effects("acme").await.unwrap(), 0);
    world.teardown().await.unwrap();
}

#[tokio::test]
async fn dropped_claim_that_waited_leaves_the_queue() {
    let world = PostgresHarness::setup().await.unwrap();
    let holder = world.open(PostgresConfig::new()).await.unwrap();
    let store = alone(&world).await;
    let first = fresh(&holder, "e").await;
    let racer = store.clone();
    let waiting = tokio::spawn(async move { racer.claim(&event("e"), PATIENT).await.map(drop) });
    while world.waiting().await.unwrap() == 0 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    waiting.abort();
    while world.waiting().await.unwrap() > 0 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    drop(fresh(&store, "other").await);
    holder.commit(first).await.unwrap();
    world.teardown().await.unwrap();
}

#[tokio::test]
async fn limits_of_the_session_do_not_end_a_wait() {
    let world = PostgresHarness::setup().await.unwrap();
    let outside = world.connect().await.unwrap();
    let name = world.config().get_dbname().unwrap().to_owned();
    for limit in ["lock_timeout", "statement_timeout"] {
        let holder = world.open(PostgresConfig::new()).await.unwrap();
        let first = fresh(&holder, limit).await;
        let set = format!("ALTER DATABASE {name} SET {limit} = '20ms'");
        outside.batch_execute(&set).await.unwrap();
        let store = alone(&world).await;
        let racer = store.clone();
        let waiting = tokio::spawn(async move { racer.claim(&event(limit), PATIENT).await });
        // Several of the session's limits.
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!(!waiting.is_finished());
        holder.rollback(first).await.unwrap();
        assert!(matches!(waiting.await.unwrap().unwrap(), Claim::Fresh(_)));

        let first = fresh(&holder, limit).await;
        let error = store
            .claim(&event(limit), Duration::from_millis(300))
            .await
            .unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::InFlight);
        drop(first);
        let reset = format!("ALTER DATABASE {name} RESET {limit}");
        outside.batch_execute(&reset).await.unwrap();
    }
    world.teardown().await.unwrap();
}

#[test]
fn dropping_outside_of_a_runtime_rolls_back() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let (world, store, tx) = runtime.block_on(async {
        let world = PostgresHarness::setup().await.unwrap();
        let store = alone(&world).await;
        let tx = fresh(&store, "e").await;
        (world, store, tx)
    });
    std::thread::spawn(move || drop(tx)).join().unwrap();
    runtime.block_on(async move {
        drop(fresh(&store, "e").await);
        world.teardown().await.unwrap();
    });
}

#[test]
fn dropping_after_the_runtime_has_shut_down_rolls_back() {
    let build = || {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap()
    };
    let (own, short) = (build(), build());
    let world = own.block_on(PostgresHarness::setup()).unwrap();
    let (store, tx, commit) = short.block_on(async {
        let store = world.open(PostgresConfig::new()).await.unwrap();
        let (tx, second) = (fresh(&store, "1").await, fresh(&store, "2").await);
        let committing = store.clone();
        (store, tx, async move { committing.commit(second).await })
    });
    short.shutdown_timeout(Duration::from_secs(5));
    drop(tx);
    drop(commit);
    drop(store);
    own.block_on(async move {
        let store = world.open(PostgresConfig::new()).await.unwrap();
        drop(fresh(&store, "1").await);
        drop(fresh(&store, "2").await);
        world.teardown().await.unwrap();
    });
}
