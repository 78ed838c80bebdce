//! R3: the first rolls back, and exactly one of those who wait processes.

use std::sync::Arc;

use onceonly::{ClaimStore, HandleError, Handler};
use tokio::task::JoinSet;

use crate::world::{PATIENT, World, claimed, event, must};
use crate::{Harness, HarnessError, race};

async fn one_processes<H: Harness>(racers: u32, stores: u32) {
    let world = World::<H>::new().await;
    let holder = world.open(racers + 2).await;
    let mut opened = vec![Arc::clone(&holder)];
    for _ in 1..stores {
        opened.push(world.open(racers + 2).await);
    }
    let event = event("r3");
    let mut tx = claimed(&*holder, &event).await;
    world.credit(&mut tx, "acme").await;
    let stores: Vec<_> = opened
        .iter()
        .cycle()
        .take(racers as usize)
        .cloned()
        .collect();
    let race = race::start(&world, &stores, &event, "acme");
    world.until_waiting(racers).await;
    must(holder.rollback(tx).await, "rolling the first back");
    race::finish(race, 1).await;
    world.expect(&event, 1, "acme", 1).await;
    world.done().await;
}

pub(crate) async fn r3_two_racers_one_processes_after_a_rollback<H: Harness>() {
    one_processes::<H>(2, 1).await;
}

pub(crate) async fn r3_three_racers_one_processes_after_a_rollback<H: Harness>() {
    one_processes::<H>(3, 1).await;
}

pub(crate) async fn r3_eight_racers_one_processes_after_a_rollback<H: Harness>() {
    one_processes::<H>(8, 1).await;
}

pub(crate) async fn r3_thirty_two_racers_one_processes_after_a_rollback<H: Harness>() {
    one_processes::<H>(32, 1).await;
}

pub(crate) async fn r3_racers_of_two_stores_one_processes_after_a_rollback<H: Harness>() {
    one_processes::<H>(8, 2).await;
}

pub(crate) async fn r3_handlers_of_two_stores_process_once_after_failures<H: Harness>() {
    let world = World::<H>::new().await;
    let handlers = [
        Handler::new(world.open(8).await).with_wait(PATIENT),
        Handler::new(world.open(8).await).with_wait(PATIENT),
    ];
    let mut deliveries = JoinSet::new();
    for delivery in 0..16 {
        let (world, handler) = (world.clone(), handlers[delivery % 2].clone());
        deliveries.spawn(async move {
            // Six of them fail; whichever comes first of the others processes.
            let fails = delivery < 6;
            let apply = async |tx: &mut _| {
                world.effect(tx, "acme").await?;
                if fails {
                    Err(HarnessError::from("planted"))
                } else {
                    Ok(())
                }
            };
            match handler.handle(&event("r3"), apply).await {
                Ok(outcome) => !outcome.is_duplicate(),
                Err(HandleError::Apply(_)) => false,
                Err(error) => panic!("no racer may see the store's error, but one did: {error:?}"),
            }
        });
    }
    let processed = deliveries
        .join_all()
        .await
        .into_iter()
        .filter(|processed| *processed)
        .count();
    assert_eq!(processed, 1, "deliveries that processed");
    world.expect(&event("r3"), 1, "acme", 1).await;
    world.done().await;
}
