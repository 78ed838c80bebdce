//! R5: each future is dropped after its first poll, its second, and so on, until it is ready in time.

use std::sync::Arc;
use std::time::Duration;

use onceonly::{Claim, ClaimStore, Handler};
use tokio::time::sleep;

use crate::drops::{Polled, after};
use crate::world::{PATIENT, World, claimed, duplicate, event, must};
use crate::{Harness, HarnessError};

/// More polls than any of these futures needs.
const POLLS: u32 = 64;

pub(crate) async fn r5_claim_dropped_at_every_poll_claims_nothing<H: Harness>() {
    let world = World::<H>::new().await;
    let store = world.open(1).await;
    for polls in 1..POLLS {
        let event = event(&format!("r5/{polls}"));
        let claim = after(polls, store.claim(&event, PATIENT)).await;
        let ready = matches!(claim, Polled::Ready(_));
        drop(claim);
        world.expect(&event, 0, "acme", u64::from(polls) - 1).await;
        world.process(&store, &event, "acme").await;
        world.expect(&event, 1, "acme", polls.into()).await;
        if ready {
            break;
        }
    }
    world.done().await;
}

pub(crate) async fn r5_commit_dropped_at_every_poll_is_all_or_nothing<H: Harness>() {
    let world = World::<H>::new().await;
    let store = world.open(1).await;
    for polls in 0..POLLS {
        let event = event(&format!("r5/{polls}"));
        let mut tx = claimed(&*store, &event).await;
        world.credit(&mut tx, "acme").await;
        let commit = after(polls, store.commit(tx)).await;
        match must(
            store.claim(&event, PATIENT).await,
            "claiming after a dropped commit",
        ) {
            Claim::Duplicate(_) => {}
            Claim::Fresh(mut tx) => {
                assert!(
                    matches!(commit, Polled::Dropped),
                    "{commit:?}, and the key was free"
                );
                world.credit(&mut tx, "acme").await;
                must(store.commit(tx).await, "committing");
            }
        }
        world.expect(&event, 1, "acme", u64::from(polls) + 1).await;
        if matches!(commit, Polled::Ready(_)) {
            break;
        }
    }
    world.done().await;
}

pub(crate) async fn r5_rollback_dropped_at_every_poll_rolls_back<H: Harness>() {
    let world = World::<H>::new().await;
    let store = world.open(1).await;
    for polls in 0..POLLS {
        let event = event(&format!("r5/{polls}"));
        let mut tx = claimed(&*store, &event).await;
        world.credit(&mut tx, "nobody").await;
        let rollback = after(polls, store.rollback(tx)).await;
        world.process(&store, &event, "acme").await;
        world.expect(&event, 1, "acme", u64::from(polls) + 1).await;
        world.expect(&event, 1, "nobody", 0).await;
        if matches!(rollback, Polled::Ready(_)) {
            break;
        }
    }
    world.done().await;
}

pub(crate) async fn r5_handle_dropped_at_every_poll_is_all_or_nothing<H: Harness>() {
    let world = World::<H>::new().await;
    let handler = Handler::new(world.open(1).await).with_wait(PATIENT);
    for polls in 1..POLLS {
        let event = event(&format!("r5/{polls}"));
        let apply = async |tx: &mut _| {
            world.effect(tx, "acme").await?;
            tokio::task::yield_now().await;
            Ok::<_, HarnessError>(())
        };
        let first = after(polls, handler.handle(&event, apply)).await;
        assert_eq!(
            handler.in_flight(),
            0,
            "keys in the handler's queue after a drop"
        );
        must(
            handler.handle(&event, apply).await,
            "delivering again after a drop",
        );
        world.expect(&event, 1, "acme", polls.into()).await;
        if matches!(first, Polled::Ready(_)) {
            break;
        }
    }
    world.done().await;
}

pub(crate) async fn r5_claim_of_a_held_key_dropped_at_every_poll_claims_nothing<H: Harness>() {
    let world = World::<H>::new().await;
    let (holder, racing) = (world.open(1).await, world.open(1).await);
    let held = event("held");
    let tx = claimed(&*holder, &held).await;
    for polls in 1..POLLS {
        let claim = tokio::spawn({
            let (racing, held) = (Arc::clone(&racing), held.clone());
            async move { drop(after(polls, racing.claim(&held, PATIENT)).await) }
        });
        let waits = loop {
            if claim.is_finished() {
                break false;
            }
            if must(world.waiting().await, "asking who waits") > 0 {
                break true;
            }
            sleep(Duration::from_millis(1)).await;
        };
        claim.abort();
        drop(claim.await);
        if H::capabilities().concurrent_keys {
            let other = event(&format!("other/{polls}"));
            world.process(&racing, &other, "other").await;
        }
        // It dropped while it waited: more polls come only with the holder's end.
        if waits && polls > 8 {
            break;
        }
    }
    must(holder.rollback(tx).await, "rolling back");
    world.process(&racing, &held, "acme").await;
    world.expect(&held, 1, "acme", 1).await;
    world.done().await;
}

pub(crate) async fn r5_prune_dropped_at_every_poll_harms_nothing<H: Harness>() {
    let world = World::<H>::new().await;
    let store = world.open(1).await;
    let day = Duration::from_secs(24 * 60 * 60);
    for polls in 1..POLLS {
        let (old, young) = (
            event(&format!("old/{polls}")),
            event(&format!("young/{polls}")),
        );
        world.process(&store, &old, "acme").await;
        world.process(&store, &young, "acme").await;
        must(world.age(&old, 2 * day).await, "making a claim older");
        let pruned = after(polls, store.prune(day, 10)).await;
        drop(must(
            store.claim(&old, PATIENT).await,
            "claiming after a dropped prune",
        ));
        duplicate(&*store, &young).await;
        if let Polled::Ready(pruned) = pruned {
            must(pruned, "pruning");
            world.expect(&old, 0, "nobody", 0).await;
            break;
        }
    }
    world.done().await;
}
