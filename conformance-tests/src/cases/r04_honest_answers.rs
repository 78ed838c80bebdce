//! R4: `Duplicate` only for a committed claim, `Processed` only for a confirmed commit.

use std::time::Duration;

use onceonly::{Claim, ClaimStore, Handler, StoreErrorKind};

use crate::world::{PATIENT, World, claimed, event, kind, must};
use crate::{Harness, HarnessError};

pub(crate) async fn r4_an_open_claim_is_never_a_duplicate<H: Harness>() {
    let world = World::<H>::new().await;
    let store = world.open(4).await;
    let event = event("r4");
    let tx = claimed(&*store, &event).await;
    for wait in [Duration::ZERO, Duration::from_millis(50)] {
        let answer = store.claim(&event, wait).await;
        let answer = kind(answer, "a second claim while the first is open");
        assert!(
            matches!(answer, StoreErrorKind::InFlight | StoreErrorKind::Conflict),
            "an open claim was answered with {answer:?}"
        );
    }
    must(store.rollback(tx).await, "rolling back");
    world.process(&store, &event, "acme").await;
    world.expect(&event, 1, "acme", 1).await;
    world.done().await;
}

pub(crate) async fn r4_processed_means_committed<H: Harness>() {
    let world = World::<H>::new().await;
    let handler = Handler::new(world.open(2).await);
    for id in ["a", "b", "c", "d", "e"] {
        let event = event(id);
        let apply = async |tx: &mut _| {
            world.effect(tx, id).await?;
            Ok::<_, HarnessError>(id)
        };
        let outcome = must(handler.handle(&event, apply).await, "delivering");
        assert_eq!(outcome.processed(), Some(id), "what apply returned");
        world.expect(&event, 1, id, 1).await;
    }
    world.done().await;
}

pub(crate) async fn r4_other_keys_are_claimed_beside_an_open_claim<H: Harness>() {
    let world = World::<H>::new().await;
    let store = world.open(4).await;
    let open = claimed(&*store, &event("held")).await;
    for id in ["a", "b", "c"] {
        match must(
            store.claim(&event(id), Duration::from_secs(5)).await,
            "claiming another key",
        ) {
            Claim::Fresh(tx) => must(store.commit(tx).await, "committing another key"),
            Claim::Duplicate(_) => panic!("{id} was never claimed"),
        }
    }
    must(store.commit(open).await, "committing the first key");
    world.done().await;
}

pub(crate) async fn r4_lost_connection_is_never_a_duplicate<H: Harness>() {
    let world = World::<H>::new().await;
    let holder = world.open(2).await;
    let (proxy, racing) = world.open_behind_a_proxy(2).await;
    let event = event("r4");
    let tx = claimed(&*holder, &event).await;
    let waiting = tokio::spawn({
        let event = event.clone();
        async move { racing.claim(&event, PATIENT).await.map(drop) }
    });
    world.until_waiting(1).await;
    proxy.sever().await;
    let answer = must(waiting.await, "joining a claim whose connection is lost");
    let answer = kind(answer, "a claim that waits and loses its connection");
    assert_eq!(
        answer,
        StoreErrorKind::Unavailable,
        "the claim that lost its connection"
    );
    must(holder.rollback(tx).await, "rolling back");
    world.process(&holder, &event, "acme").await;
    world.expect(&event, 1, "acme", 1).await;
    world.done().await;
}
