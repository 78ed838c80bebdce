//! Stores that are also `ClaimRecords`: looking up and deleting single claims.

use std::sync::Arc;
use std::time::Duration;

use onceonly::{ClaimRecords, ClaimStore, Event, Forget, StoreErrorKind};

use crate::Harness;
use crate::world::{PATIENT, World, claimed, duplicate, event, kind, must};

async fn is_claimed<S: ClaimRecords>(store: &S, event: &Event) -> bool {
    must(
        store.is_claimed(event.source(), event.id()).await,
        "asking whether a key is claimed",
    )
}

async fn forget<S: ClaimRecords>(store: &S, event: &Event) -> Forget {
    must(
        store.forget(event.source(), event.id(), PATIENT).await,
        "forgetting a claim",
    )
}

pub(crate) async fn records_know_committed_claims_only<H: Harness>()
where
    H::Store: ClaimRecords,
{
    let world = World::<H>::new().await;
    let store = world.open(2).await;
    let (kept, gone) = (event("kept"), event("gone"));
    assert!(
        !is_claimed(&*store, &kept).await,
        "a key that was never claimed"
    );
    world.process(&store, &kept, "acme").await;
    let tx = claimed(&*store, &gone).await;
    must(store.rollback(tx).await, "rolling back");
    assert!(is_claimed(&*store, &kept).await, "a committed claim");
    assert!(
        !is_claimed(&*store, &gone).await,
        "a claim that was rolled back"
    );
    let other = must(Event::new("another source", "kept"), "an event");
    assert!(
        !is_claimed(&*store, &other).await,
        "the same id of another source"
    );
    world.done().await;
}

pub(crate) async fn records_look_without_waiting<H: Harness>()
where
    H::Store: ClaimRecords,
{
    let world = World::<H>::new().await;
    let store = world.open(2).await;
    let event = event("open");
    let tx = claimed(&*store, &event).await;
    assert!(!is_claimed(&*store, &event).await, "an open claim");
    must(store.commit(tx).await, "committing");
    assert!(is_claimed(&*store, &event).await, "a committed claim");
    world.done().await;
}

pub(crate) async fn records_forget_a_claim_and_the_next_delivery_processes<H: Harness>()
where
    H::Store: ClaimRecords,
{
    let world = World::<H>::new().await;
    let store = world.open(2).await;
    let event = event("forgotten");
    assert_eq!(
        forget(&*store, &event).await,
        Forget::NotClaimed,
        "before the claim"
    );
    world.process(&store, &event, "acme").await;
    duplicate(&*store, &event).await;
    assert_eq!(
        forget(&*store, &event).await,
        Forget::Forgotten,
        "after the claim"
    );
    assert_eq!(
        forget(&*store, &event).await,
        Forget::NotClaimed,
        "a second time"
    );
    world.expect(&event, 0, "acme", 1).await;
    world.process(&store, &event, "acme").await;
    world.expect(&event, 1, "acme", 2).await;
    world.done().await;
}

pub(crate) async fn records_forget_waits_for_an_open_claim<H: Harness>()
where
    H::Store: ClaimRecords,
{
    let world = World::<H>::new().await;
    let store = world.open(4).await;
    let event = event("open");
    let tx = claimed(&*store, &event).await;
    let short = store
        .forget(event.source(), event.id(), Duration::from_millis(100))
        .await;
    assert_eq!(
        kind(short, "forgetting an open claim"),
        StoreErrorKind::InFlight
    );
    let forgetting = {
        let (store, event) = (Arc::clone(&store), event.clone());
        tokio::spawn(async move { forget(&*store, &event).await })
    };
    world.until_waiting(1).await;
    must(store.commit(tx).await, "committing");
    assert_eq!(
        must(forgetting.await, "forgetting"),
        Forget::Forgotten,
        "after the commit"
    );
    world.process(&store, &event, "acme").await;
    world.expect(&event, 1, "acme", 1).await;
    world.done().await;
}
