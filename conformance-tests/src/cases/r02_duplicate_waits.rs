//! R2: a racing claim of the same key waits while the first is open, and is then a duplicate.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use onceonly::{ClaimStore, Handler};
use tokio::task::JoinSet;

use crate::world::{PATIENT, World, claimed, duplicate, event, must};
use crate::{Harness, HarnessError, race};

pub(crate) async fn r2_second_delivery_is_duplicate<H: Harness>() {
    let world = World::<H>::new().await;
    let store = world.open(2).await;
    let event = event("r2");
    world.process(&store, &event, "acme").await;
    for _ in 0..3 {
        duplicate(&*store, &event).await;
    }
    world.expect(&event, 1, "acme", 1).await;
    world.done().await;
}

pub(crate) async fn r2_racing_claim_waits_and_is_duplicate<H: Harness>() {
    let world = World::<H>::new().await;
    let store = world.open(4).await;
    waits_and_is_duplicate(&world, &store, &store).await;
    world.done().await;
}

pub(crate) async fn r2_racing_claim_of_another_store_waits_and_is_duplicate<H: Harness>() {
    let world = World::<H>::new().await;
    let (first, second) = (world.open(1).await, world.open(1).await);
    waits_and_is_duplicate(&world, &first, &second).await;
    world.done().await;
}

async fn waits_and_is_duplicate<H: Harness>(
    world: &World<H>,
    first: &Arc<H::Store>,
    second: &Arc<H::Store>,
) {
    let event = event("r2");
    let mut tx = claimed(&**first, &event).await;
    world.credit(&mut tx, "acme").await;
    let racers = race::start(world, std::slice::from_ref(second), &event, "acme");
    world.until_waiting(1).await;
    assert!(
        !racers.is_empty(),
        "the second claim ended while the first is open"
    );
    must(first.commit(tx).await, "committing the first");
    race::finish(racers, 0).await;
    world.expect(&event, 1, "acme", 1).await;
}

pub(crate) async fn r2_racing_deliveries_through_one_handler_run_apply_once<H: Harness>() {
    let world = World::<H>::new().await;
    let handler = Handler::new(world.open(4).await).with_wait(PATIENT);
    let runs = Arc::new(AtomicU32::new(0));
    let mut deliveries = JoinSet::new();
    for _ in 0..8 {
        let (world, handler, runs) = (world.clone(), handler.clone(), Arc::clone(&runs));
        deliveries.spawn(async move {
            let apply = async |tx: &mut _| {
                runs.fetch_add(1, Ordering::Relaxed);
                world.effect(tx, "acme").await?;
                Ok::<_, HarnessError>(())
            };
            must(handler.handle(&event("r2"), apply).await, "delivering").is_duplicate()
        });
    }
    let duplicates = deliveries
        .join_all()
        .await
        .into_iter()
        .filter(|duplicate| *duplicate)
        .count();
    assert_eq!(
        (duplicates, runs.load(Ordering::Relaxed)),
        (7, 1),
        "(duplicates, runs of apply)"
    );
    world.expect(&event("r2"), 1, "acme", 1).await;
    world.done().await;
}

pub(crate) async fn r2_thirty_two_racing_claims_are_duplicates<H: Harness>() {
    let world = World::<H>::new().await;
    let (holder, racing) = (world.open(1).await, world.open(32).await);
    let event = event("r2");
    let mut tx = claimed(&*holder, &event).await;
    world.credit(&mut tx, "acme").await;
    let racers = race::start(&world, &vec![racing; 32], &event, "acme");
    world.until_waiting(32).await;
    must(holder.commit(tx).await, "committing the first");
    race::finish(racers, 0).await;
    world.expect(&event, 1, "acme", 1).await;
    world.done().await;
}

pub(crate) async fn r2_delivery_of_another_handler_waits_and_is_duplicate<H: Harness>() {
    let world = World::<H>::new().await;
    let first = Handler::new(world.open(1).await).with_wait(PATIENT);
    let second = Handler::new(world.open(1).await).with_wait(PATIENT);
    let event = event("r2");
    let mut racing = None;
    let apply = async |tx: &mut _| {
        world.effect(tx, "acme").await?;
        let (world, event) = (world.clone(), event.clone());
        let delivery = tokio::spawn({
            let world = world.clone();
            async move {
                let apply = async |tx: &mut _| world.effect(tx, "acme").await;
                must(
                    second.handle(&event, apply).await,
                    "delivering to the second handler",
                )
            }
        });
        world.until_waiting(1).await;
        assert!(
            !delivery.is_finished(),
            "the second delivery ended while the first is open"
        );
        racing = Some(delivery);
        Ok::<_, HarnessError>(())
    };
    must(
        first.handle(&event, apply).await,
        "delivering to the first handler",
    );
    if let Some(second) = racing {
        let second = must(second.await, "joining the second delivery");
        assert!(second.is_duplicate(), "both handlers processed the event");
    }
    world.expect(&event, 1, "acme", 1).await;
    world.done().await;
}
