//! Futures and transactions that are dropped, and what the server and the pool see of it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test states what it expects"
)]

mod harness;

use std::time::{Duration, Instant};

use harness::MySqlHarness;
use mysql_async::prelude::Queryable;
use onceonly::{ClaimFate, ClaimStore, Event, StoreErrorKind};
use onceonly_conformance::{Harness, StoreOptions};
use onceonly_mysql::{MySqlConfig, MySqlStore, MySqlTx};
use tokio::time::timeout;

const WAIT: Duration = Duration::from_secs(2);
/// Five times what a drop promises.
const PROMPT: Duration = Duration::from_secs(5);

fn event(id: &str) -> Event {
    Event::new("drop", id).unwrap()
}

async fn small(world: &MySqlHarness) -> MySqlStore {
    world
        .store(&StoreOptions::with_connections(1))
        .await
        .unwrap()
}

async fn claim(store: &MySqlStore, id: &str) -> MySqlTx {
    store
        .claim(&event(id), WAIT)
        .await
        .unwrap()
        .fresh()
        .unwrap()
}

#[tokio::test]
async fn a_statement_in_flight_is_killed_with_its_transaction() {
    let world = MySqlHarness::setup().await.unwrap();
    let store = small(&world).await;
    let mut tx = claim(&store, "a").await;
    let session = tx.id();
    let slow = tx.query_drop("SELECT SLEEP(60)");
    assert!(timeout(Duration::from_millis(100), slow).await.is_err());
    let dropped = Instant::now();
    drop(tx);
    let again = claim(&store, "a").await;
    assert!(dropped.elapsed() < PROMPT);
    assert_ne!(again.id(), session, "a killed session must not be pooled");
    store.rollback(again).await.unwrap();
    world.teardown().await.unwrap();
}

#[tokio::test]
async fn a_waiting_claim_that_is_dropped_leaves_the_queue() {
    let world = MySqlHarness::setup().await.unwrap();
    let holder = small(&world).await;
    let held = claim(&holder, "a").await;
    let store = small(&world).await;
    let racing = tokio::spawn({
        let store = store.clone();
        async move { store.claim(&event("a"), Duration::MAX).await.map(drop) }
    });
    while world.waiting().await.unwrap() == 0 {}
    racing.abort();
    let dropped = Instant::now();
    while world.waiting().await.unwrap() > 0 {
        assert!(dropped.elapsed() < PROMPT, "the dropped claim still waits");
    }
    // Its pool of one has a connection for other keys.
    drop(claim(&store, "b").await);
    holder.commit(held).await.unwrap();
    world.teardown().await.unwrap();
}

#[tokio::test]
async fn a_transaction_outlives_its_runtime_without_a_panic() {
    let world = MySqlHarness::setup().await.unwrap();
    let opts = world.opts(&StoreOptions::default());
    let tx = std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let store = MySqlConfig::new().from_opts(opts).unwrap();
        let tx = runtime.block_on(claim(&store, "a"));
        runtime.shutdown_timeout(Duration::from_secs(1));
        tx
    })
    .join()
    .unwrap();
    std::thread::spawn(move || drop(tx)).join().unwrap();
    let other = small(&world).await;
    drop(claim(&other, "a").await);
    world.teardown().await.unwrap();
}

#[test]
fn shutdown_of_the_runtime_under_open_work_does_not_panic() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let world = runtime.block_on(MySqlHarness::setup()).unwrap();
    let store = runtime.block_on(small(&world)).clone();
    let held = runtime.block_on(claim(&store, "a"));
    let racing = runtime.block_on(small(&world));
    runtime.spawn(async move {
        let _ = racing.claim(&event("a"), Duration::MAX).await;
    });
    runtime.block_on(async { while world.waiting().await.unwrap() == 0 {} });
    runtime.shutdown_timeout(Duration::from_secs(1));
    drop(held);
}

#[tokio::test]
async fn a_panic_with_an_open_transaction_rolls_back() {
    let world = MySqlHarness::setup().await.unwrap();
    let store = small(&world).await;
    let panicked = tokio::spawn({
        let store = store.clone();
        async move {
            let _tx = claim(&store, "a").await;
            panic!("apply panicked");
        }
    });
    assert!(panicked.await.is_err());
    let again = claim(&store, "a").await;
    store.commit(again).await.unwrap();
    world.teardown().await.unwrap();
}

/// The reply to a statement that was given up is what the driver gives the next one.
#[tokio::test]
async fn a_commit_out_of_step_is_never_ok() {
    let world = MySqlHarness::setup().await.unwrap();
    let store = small(&world).await;
    let mut tx = claim(&store, "a").await;
    let slow = tx.query_drop("SELECT SLEEP(0.3)");
    assert!(timeout(Duration::from_millis(50), slow).await.is_err());
    tx.query_drop("ROLLBACK").await.unwrap();
    let error = store.commit(tx).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::CommitUnknown, "{error}");
    assert_eq!(world.claims(&event("a")).await.unwrap(), 0);
    let again = claim(&store, "a").await;
    store.commit(again).await.unwrap();
    world.teardown().await.unwrap();
}

#[tokio::test]
async fn a_rollback_out_of_step_is_not_confirmed_and_not_pooled() {
    let world = MySqlHarness::setup().await.unwrap();
    let store = small(&world).await;
    let mut tx = claim(&store, "a").await;
    let session = tx.id();
    let slow = tx.query_drop("SELECT SLEEP(0.3)");
    assert!(timeout(Duration::from_millis(50), slow).await.is_err());
    tx.query_drop("DO 1").await.unwrap();
    assert!(store.rollback(tx).await.is_err());
    let again = claim(&store, "a").await;
    assert_ne!(again.id(), session);
    store.commit(again).await.unwrap();
    world.teardown().await.unwrap();
}

#[tokio::test]
async fn a_transaction_started_by_the_driver_is_seen() {
    let world = MySqlHarness::setup().await.unwrap();
    let store = small(&world).await;
    for committed in [true, false] {
        let id = format!("a {committed}");
        let mut tx = claim(&store, &id).await;
        let inner = tx
            .start_transaction(mysql_async::TxOpts::default())
            .await
            .unwrap();
        if committed {
            inner.commit().await.unwrap();
        } else {
            drop(inner);
        }
        let error = store.commit(tx).await.unwrap_err();
        let claim = ClaimFate::Durable;
        assert_eq!(
            error.kind(),
            StoreErrorKind::TransactionEnded { claim },
            "{error}"
        );
        assert_eq!(world.claims(&event(&id)).await.unwrap(), 1);
    }
    world.teardown().await.unwrap();
}

#[tokio::test]
async fn an_unread_result_of_apply_does_not_disturb_the_commit() {
    let world = MySqlHarness::setup().await.unwrap();
    let store = small(&world).await;
    let mut tx = claim(&store, "a").await;
    drop(tx.query_iter("SELECT 1; SELECT 2").await.unwrap());
    store.commit(tx).await.unwrap();
    assert_eq!(world.claims(&event("a")).await.unwrap(), 1);
    world.teardown().await.unwrap();
}
