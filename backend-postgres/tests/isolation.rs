//! The isolation level is the store's, and the claim is right under each.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test states what it expects"
)]

mod harness;

use std::time::Duration;

use harness::PostgresHarness;
use onceonly::{Claim, ClaimStore, Event, Handler, StoreErrorKind};
use onceonly_conformance::Harness;
use onceonly_postgres::{Isolation, PostgresConfig, PostgresStore, PostgresTx};

const PATIENT: Duration = Duration::from_secs(30);
const STRICT: [Isolation; 2] = [Isolation::RepeatableRead, Isolation::Serializable];

async fn open(world: &PostgresHarness, isolation: Isolation) -> PostgresStore {
    let config = PostgresConfig::new().isolation(isolation);
    world.open(config).await.unwrap()
}

async fn fresh(store: &PostgresStore, id: &str) -> PostgresTx {
    let event = Event::new("isolation", id).unwrap();
    store.claim(&event, PATIENT).await.unwrap().fresh().unwrap()
}

async fn shown(tx: &PostgresTx) -> String {
    let row = tx.query_typed_one("SHOW transaction_isolation", &[]).await;
    row.unwrap().get(0)
}

async fn until_waiting(world: &PostgresHarness) {
    while world.waiting().await.unwrap() == 0 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn the_level_of_the_database_does_not_matter() {
    let world = PostgresHarness::setup().await.unwrap();
    let outside = world.connect().await.unwrap();
    let name = world.config().get_dbname().unwrap();
    let set = format!("ALTER DATABASE {name} SET default_transaction_isolation = 'serializable'");
    outside.batch_execute(&set).await.unwrap();
    for (isolation, level) in [
        (Isolation::ReadCommitted, "read committed"),
        (Isolation::RepeatableRead, "repeatable read"),
        (Isolation::Serializable, "serializable"),
    ] {
        let store = open(&world, isolation).await;
        assert_eq!(shown(&fresh(&store, level).await).await, level);
    }
    world.teardown().await.unwrap();
}

#[tokio::test]
async fn racing_claim_is_duplicate_after_the_first_commits() {
    for isolation in STRICT {
        let world = PostgresHarness::setup().await.unwrap();
        let store = open(&world, isolation).await;
        let first = fresh(&store, "e").await;
        let racer = store.clone();
        let second = tokio::spawn(async move {
            let event = Event::new("isolation", "e").unwrap();
            racer.claim(&event, PATIENT).await
        });
        until_waiting(&world).await;
        store.commit(first).await.unwrap();
        // The server answers 40001 here, which is tried again inside.
        assert!(second.await.unwrap().unwrap().is_duplicate());
        world.teardown().await.unwrap();
    }
}

#[tokio::test]
async fn racing_claims_get_through_after_the_first_rolls_back() {
    for isolation in STRICT {
        let world = PostgresHarness::setup().await.unwrap();
        let store = open(&world, isolation).await;
        let first = fresh(&store, "e").await;
        let racers: Vec<_> = (0..4)
            .map(|_| {
                let store = store.clone();
                tokio::spawn(async move {
                    let event = Event::new("isolation", "e").unwrap();
                    match store.claim(&event, PATIENT).await.unwrap() {
                        Claim::Fresh(tx) => store.commit(tx).await.map(|()| 1).unwrap(),
                        Claim::Duplicate(_) => 0,
                    }
                })
            })
            .collect();
        while world.waiting().await.unwrap() < 4 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        store.rollback(first).await.unwrap();
        let mut processed = 0;
        for racer in racers {
            processed += racer.await.unwrap();
        }
        assert_eq!(processed, 1);
        world.teardown().await.unwrap();
    }
}

#[tokio::test]
async fn update_of_a_changed_row_is_a_conflict_of_apply() {
    let world = PostgresHarness::setup().await.unwrap();
    let store = open(&world, Isolation::RepeatableRead).await;
    let tx = fresh(&store, "e").await;
    let outside = world.connect().await.unwrap();
    let update = "UPDATE counters SET n = n + 1 WHERE id = 1";
    outside.batch_execute(update).await.unwrap();
    let error = tx.batch_execute(update).await.unwrap_err();
    assert!(store.is_conflict(&error), "{error:?}");
    // A team's own error around it.
    let wrapped = std::io::Error::other(error);
    assert!(store.is_conflict(&wrapped));
    assert!(!store.is_conflict(&std::io::Error::other("something else")));
    drop(tx);
    world.teardown().await.unwrap();
}

/// Each reads what the other writes: only one of them can commit, and the other hears of it at
/// COMMIT, not before.
#[tokio::test]
async fn write_skew_is_a_conflict_at_commit_and_processed_by_the_retry() {
    let world = PostgresHarness::setup().await.unwrap();
    let store = open(&world, Isolation::Serializable).await;
    let (one, two) = (fresh(&store, "1").await, fresh(&store, "2").await);
    let read = "SELECT sum(n) FROM counters";
    one.batch_execute(read).await.unwrap();
    two.batch_execute(read).await.unwrap();
    let write = |id: u8| format!("UPDATE counters SET n = 1 WHERE id = {id}");
    one.batch_execute(&write(1)).await.unwrap();
    two.batch_execute(&write(2)).await.unwrap();
    store.commit(one).await.unwrap();
    let error = store.commit(two).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Conflict);
    assert!(store.is_conflict(&error));

    let handler = Handler::new(store);
    let event = Event::new("isolation", "2").unwrap();
    let outcome = handler.handle(&event, async |tx| tx.batch_execute(&write(2)).await);
    assert!(outcome.await.unwrap().processed().is_some());
    drop(handler);
    world.teardown().await.unwrap();
}
