//! What needs a server of its own: its settings, and transactions that outlive their session.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test states what it expects"
)]

mod harness;

use std::time::Duration;

use harness::PostgresHarness;
use onceonly::{ClaimFate, ClaimStore, Event, StoreErrorKind};
use onceonly_conformance::Harness;
use onceonly_postgres::{PostgresConfig, UnsafeSetting};

const PATIENT: Duration = Duration::from_secs(30);

async fn set(world: &PostgresHarness, setting: &str, value: &str) {
    let outside = world.connect().await.unwrap();
    let set = format!("ALTER SYSTEM SET {setting} = {value}");
    outside.batch_execute(&set).await.unwrap();
    world.restart().await.unwrap();
}

#[tokio::test]
async fn server_that_does_not_sync_is_refused_unless_allowed_by_name() {
    let world = PostgresHarness::setup_restartable().await.unwrap();
    for (setting, name) in [
        (UnsafeSetting::FsyncOff, "fsync"),
        (UnsafeSetting::FullPageWritesOff, "full_page_writes"),
    ] {
        set(&world, name, "off").await;
        let event = Event::new("own_server", name).unwrap();
        let store = world.open(PostgresConfig::new()).await.unwrap();
        let error = store.claim(&event, PATIENT).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Schema);
        assert!(error.to_string().contains(name), "{error}");
        let allowed = PostgresConfig::new().allow_unsafe(setting);
        let store = world.open(allowed).await.unwrap();
        drop(store.claim(&event, PATIENT).await.unwrap());
        set(&world, name, "on").await;
    }
    world.teardown().await.unwrap();
}

/// Nobody sees the claim, and nobody can say that it is gone.
#[tokio::test]
async fn prepared_transaction_is_of_unknown_fate() {
    let world = PostgresHarness::setup_restartable().await.unwrap();
    set(&world, "max_prepared_transactions", "5").await;
    let store = world.open(PostgresConfig::new()).await.unwrap();
    let event = Event::new("own_server", "e").unwrap();
    let tx = store.claim(&event, PATIENT).await.unwrap().fresh().unwrap();
    tx.batch_execute("PREPARE TRANSACTION 'apply'")
        .await
        .unwrap();
    let error = store.commit(tx).await.unwrap_err();
    let unknown = StoreErrorKind::TransactionEnded {
        claim: ClaimFate::Unknown,
    };
    assert_eq!(error.kind(), unknown);
    let outside = world.connect().await.unwrap();
    outside
        .batch_execute("ROLLBACK PREPARED 'apply'")
        .await
        .unwrap();
    drop(store.claim(&event, PATIENT).await.unwrap().fresh().unwrap());
    world.teardown().await.unwrap();
}

#[tokio::test]
async fn store_goes_on_after_a_restart() {
    let world = PostgresHarness::setup_restartable().await.unwrap();
    let store = world.open(PostgresConfig::new()).await.unwrap();
    for n in 0..3 {
        let event = Event::new("own_server", n.to_string()).unwrap();
        let tx = store.claim(&event, PATIENT).await.unwrap().fresh().unwrap();
        let error = {
            world.restart().await.unwrap();
            store.commit(tx).await.unwrap_err()
        };
        assert_eq!(error.kind(), StoreErrorKind::CommitUnknown);
        let tx = store.claim(&event, PATIENT).await.unwrap().fresh().unwrap();
        store.commit(tx).await.unwrap();
    }
    world.teardown().await.unwrap();
}
