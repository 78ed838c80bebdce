//! The task that keeps the 30-day promise.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test states what it expects"
)]

use std::time::Duration;

use onceonly::{ClaimRecords, ClaimStore, Event, MemoryStore, Pruner};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

async fn process(store: &MemoryStore, id: u32) -> Event {
    let event = Event::new("test", id.to_string()).unwrap();
    let tx = store
        .claim(&event, Duration::ZERO)
        .await
        .unwrap()
        .fresh()
        .unwrap();
    store.commit(tx).await.unwrap();
    event
}

#[tokio::test(start_paused = true)]
async fn claims_are_kept_for_30_days_and_then_pruned() {
    let store = MemoryStore::new();
    let event = process(&store, 1).await;
    let task = tokio::spawn(Pruner::new(store.clone()).run());
    tokio::time::sleep(30 * DAY - Duration::from_secs(60)).await;
    assert!(store.is_claimed(event.source(), event.id()).await.unwrap());
    tokio::time::sleep(DAY).await;
    assert!(!store.is_claimed(event.source(), event.id()).await.unwrap());
    task.abort();
}

#[tokio::test(start_paused = true)]
async fn one_round_prunes_batch_by_batch_until_none_is_old() {
    let store = MemoryStore::new();
    for id in 0..25 {
        process(&store, id).await;
    }
    tokio::time::sleep(31 * DAY).await;
    let young = process(&store, 99).await;
    assert_eq!(
        Pruner::new(store.clone()).batch(10).prune().await.unwrap(),
        25
    );
    assert!(store.is_claimed(young.source(), young.id()).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn an_open_claim_is_never_pruned() {
    let store = MemoryStore::new();
    let event = Event::new("test", "open").unwrap();
    let tx = store
        .claim(&event, Duration::ZERO)
        .await
        .unwrap()
        .fresh()
        .unwrap();
    tokio::time::sleep(31 * DAY).await;
    assert_eq!(Pruner::new(store.clone()).prune().await.unwrap(), 0);
    store.commit(tx).await.unwrap();
    assert!(store.is_claimed(event.source(), event.id()).await.unwrap());
}
