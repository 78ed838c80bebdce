//! R1: claim and effects are committed together, or neither is there.

use onceonly::{Claim, ClaimStore};

use crate::Harness;
use crate::world::{PATIENT, World, claimed, event, must};

pub(crate) async fn r1_claim_and_effects_are_committed_together<H: Harness>() {
    let world = World::<H>::new().await;
    let store = world.open(2).await;
    let event = event("r1");
    world.process(&store, &event, "acme").await;
    world.expect(&event, 1, "acme", 1).await;
    world.done().await;
}

pub(crate) async fn r1_nothing_is_there_after_a_rollback<H: Harness>() {
    let world = World::<H>::new().await;
    let store = world.open(2).await;
    let event = event("r1");
    let mut tx = claimed(&*store, &event).await;
    world.credit(&mut tx, "acme").await;
    must(store.rollback(tx).await, "rolling back");
    world.expect(&event, 0, "acme", 0).await;
    world.process(&store, &event, "acme").await;
    world.expect(&event, 1, "acme", 1).await;
    world.done().await;
}

pub(crate) async fn r1_nothing_is_seen_before_the_commit<H: Harness>() {
    let world = World::<H>::new().await;
    let store = world.open(2).await;
    let event = event("r1");
    let mut tx = claimed(&*store, &event).await;
    world.expect(&event, 0, "acme", 0).await;
    world.credit(&mut tx, "acme").await;
    world.expect(&event, 0, "acme", 0).await;
    must(store.commit(tx).await, "committing");
    world.expect(&event, 1, "acme", 1).await;
    world.done().await;
}

pub(crate) async fn r1_many_effects_are_committed_together<H: Harness>() {
    let world = World::<H>::new().await;
    let store = world.open(2).await;
    for (id, commit) in [("rolled back", false), ("committed", true)] {
        let event = event(id);
        let mut tx = claimed(&*store, &event).await;
        for _ in 0..100 {
            world.credit(&mut tx, id).await;
        }
        if commit {
            must(store.commit(tx).await, "committing");
            world.expect(&event, 1, id, 100).await;
        } else {
            must(store.rollback(tx).await, "rolling back");
            world.expect(&event, 0, id, 0).await;
        }
    }
    world.done().await;
}

pub(crate) async fn r1_lost_connection_leaves_neither_claim_nor_effects<H: Harness>() {
    let world = World::<H>::new().await;
    let other = world.open(2).await;
    let (proxy, store) = world.open_behind_a_proxy(2).await;
    let event = event("r1");
    let mut tx = claimed(&*store, &event).await;
    world.credit(&mut tx, "acme").await;
    proxy.sever().await;
    let answer = store.commit(tx).await;
    assert!(answer.is_err(), "a commit on a lost connection succeeded");
    world.process(&other, &event, "acme").await;
    world.expect(&event, 1, "acme", 1).await;

    // A pool may hand out dead connections at first; each try must end, and soon one works.
    for turn in 0.. {
        match store.claim(&event, PATIENT).await {
            Ok(Claim::Duplicate(_)) => break,
            Ok(Claim::Fresh(_)) => panic!("{event:?} has a committed claim, and was claimed again"),
            Err(error) if error.is_retryable() && turn < 20 => {}
            Err(error) => panic!("claiming after a lost connection: {error:?}"),
        }
    }
    world.done().await;
}
