//! R3: the first rolls back, and exactly one of those who wait processes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use onceonly::{Claim, ClaimStore, HandleError, Handler};
use tokio::task::JoinSet;

use crate::drops::after;
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

pub(crate) async fn r3_racers_in_stores_of_their_own_one_processes_after_a_rollback<H: Harness>() {
    one_processes::<H>(8, 8).await;
}

pub(crate) async fn r3_racers_that_fail_in_turn_let_the_next_process<H: Harness>() {
    let world = World::<H>::new().await;
    let store = world.open(10).await;
    let event = event("r3");
    let first = claimed(&*store, &event).await;
    let claims = Arc::new(AtomicU32::new(0));
    let mut racers = JoinSet::new();
    for _ in 0..8 {
        let (world, store, claims) = (world.clone(), Arc::clone(&store), Arc::clone(&claims));
        let event = event.clone();
        racers.spawn(async move {
            let claim = store.claim(&event, PATIENT).await;
            let Claim::Fresh(mut tx) = must(claim, "claiming after others failed") else {
                return;
            };
            world.credit(&mut tx, "acme").await;
            // The first five of them fail, in every way.
            match claims.fetch_add(1, Ordering::SeqCst) {
                0 | 2 => must(store.rollback(tx).await, "rolling back"),
                1 | 3 => drop(tx),
                4 => drop(after(1, store.commit(tx)).await),
                _ => must(store.commit(tx).await, "committing"),
            }
        });
    }
    world.until_waiting(8).await;
    must(store.rollback(first).await, "rolling the first back");
    racers.join_all().await;
    let claims = claims.load(Ordering::SeqCst);
    // The fifth may have committed before its commit was dropped.
    assert!(
        (5..=6).contains(&claims),
        "{claims} racers claimed, expected five that fail and at most one that processes"
    );
    world.expect(&event, 1, "acme", 1).await;
    world.done().await;
}
