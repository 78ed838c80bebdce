//! Savepoints inside a claim: what is undone, and what is not.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test states what it expects"
)]

mod harness;

use std::time::Duration;

use futures_util::FutureExt;
use harness::PostgresHarness;
use onceonly::{ClaimStore, Event, StoreErrorKind};
use onceonly_conformance::Harness;
use onceonly_postgres::{PostgresConfig, PostgresStore, PostgresTx};

async fn world() -> (PostgresHarness, PostgresStore, PostgresTx) {
    let world = PostgresHarness::setup().await.unwrap();
    let store = world.open(PostgresConfig::new()).await.unwrap();
    let event = Event::new("savepoints", "e").unwrap();
    let claim = store.claim(&event, Duration::from_secs(30)).await.unwrap();
    (world, store, claim.fresh().unwrap())
}

fn insert(account: &str) -> String {
    format!("INSERT INTO ledger (account) VALUES ('{account}')")
}

async fn seen(world: &PostgresHarness, accounts: &[&str]) -> Vec<u64> {
    let mut seen = Vec::new();
    for account in accounts {
        seen.push(world.effects(account).await.unwrap());
    }
    seen
}

#[tokio::test]
async fn nested_savepoints_undo_their_own_part_only() {
    let (world, store, mut tx) = world().await;
    tx.batch_execute(&insert("a")).await.unwrap();
    let mut outer = tx.savepoint().await.unwrap();
    outer.batch_execute(&insert("b")).await.unwrap();
    let inner = outer.savepoint().await.unwrap();
    inner.batch_execute(&insert("c")).await.unwrap();
    inner.rollback().await.unwrap();
    let inner = outer.savepoint().await.unwrap();
    inner.batch_execute(&insert("d")).await.unwrap();
    inner.commit().await.unwrap();
    outer.commit().await.unwrap();
    store.commit(tx).await.unwrap();
    assert_eq!(seen(&world, &["a", "b", "c", "d"]).await, [1, 1, 0, 1]);
    world.teardown().await.unwrap();
}

#[tokio::test]
async fn dropped_savepoint_is_undone_with_its_failed_statement() {
    let (world, store, mut tx) = world().await;
    let savepoint = tx.savepoint().await.unwrap();
    savepoint.batch_execute(&insert("a")).await.unwrap();
    savepoint.batch_execute("SELECT 1 / 0").await.unwrap_err();
    drop(savepoint);
    let answered = tx.savepoint().now_or_never().is_some();
    assert!(!answered, "dropped before its answer");
    tx.batch_execute(&insert("b")).await.unwrap();
    store.commit(tx).await.unwrap();
    assert_eq!(seen(&world, &["a", "b"]).await, [0, 1]);
    world.teardown().await.unwrap();
}

#[tokio::test]
async fn commit_after_a_hidden_error_fails_and_undoes_the_savepoint() {
    let (world, store, mut tx) = world().await;
    let savepoint = tx.savepoint().await.unwrap();
    savepoint.batch_execute("SELECT 1 / 0").await.unwrap_err();
    savepoint.commit().await.unwrap_err();
    tx.batch_execute(&insert("a")).await.unwrap();
    store.commit(tx).await.unwrap();
    assert_eq!(seen(&world, &["a"]).await, [1]);
    world.teardown().await.unwrap();
}

#[tokio::test]
async fn dropped_commit_of_a_savepoint_does_not_doom_the_transaction() {
    let (world, store, mut tx) = world().await;
    let savepoint = tx.savepoint().await.unwrap();
    savepoint.batch_execute(&insert("a")).await.unwrap();
    assert!(savepoint.commit().now_or_never().is_none());
    store.commit(tx).await.unwrap();
    assert_eq!(seen(&world, &["a"]).await, [1]);
    world.teardown().await.unwrap();
}

#[tokio::test]
async fn hidden_error_outside_of_a_savepoint_dooms_the_event() {
    let (world, store, tx) = world().await;
    tx.batch_execute("SELECT 1 / 0").await.unwrap_err();
    let error = store.commit(tx).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::TransactionDoomed);
    world.teardown().await.unwrap();
}
