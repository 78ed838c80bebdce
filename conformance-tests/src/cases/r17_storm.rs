//! R17: a storm of one event leaves other events their connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use onceonly::{ClaimStore, Handler};
use tokio::task::JoinSet;

use crate::world::{PATIENT, World, event, must};
use crate::{Harness, HarnessError};

const STORM: u32 = 1_000;

/// Sends the storm, and returns when every delivery has begun.
async fn storm<S: ClaimStore + 'static>(handler: &Handler<Arc<S>>) -> JoinSet<bool> {
    let begun = Arc::new(AtomicU32::new(0));
    let mut deliveries = JoinSet::new();
    for _ in 0..STORM {
        let (handler, begun) = (handler.clone(), Arc::clone(&begun));
        deliveries.spawn(async move {
            begun.fetch_add(1, Ordering::Relaxed);
            let apply = async |_: &mut _| Ok::<_, HarnessError>(());
            must(
                handler.handle(&event("hot"), apply).await,
                "delivering in a storm",
            )
            .is_duplicate()
        });
    }
    while begun.load(Ordering::Relaxed) < STORM {
        tokio::task::yield_now().await;
    }
    deliveries
}

async fn all_are_duplicates(deliveries: JoinSet<bool>) {
    let duplicates = deliveries.join_all().await;
    assert!(
        duplicates.iter().all(|duplicate| *duplicate),
        "a delivery of the storm processed"
    );
}

pub(crate) async fn r17_storm_through_a_handler_holds_one_connection<H: Harness>() {
    let world = World::<H>::new().await;
    let handler = Handler::new(world.open(50).await).with_wait(PATIENT);
    let leader = must(handler.begin(&event("hot")).await, "leading").fresh();
    let quiet = must(world.connections().await, "counting connections");
    let deliveries = storm(&handler).await;
    let stormy = must(world.connections().await, "counting connections");
    assert!(
        stormy <= quiet,
        "connections: {quiet} before the storm, {stormy} in it"
    );
    if let Some(leader) = leader {
        must(leader.commit().await, "committing the leader");
    }
    all_are_duplicates(deliveries).await;
    let after = must(world.connections().await, "counting connections");
    assert!(
        after <= quiet + 1,
        "connections: {quiet} before the storm, {after} after it"
    );
    world.done().await;
}

pub(crate) async fn r17_storm_leaves_other_keys_their_connections<H: Harness>() {
    let world = World::<H>::new().await;
    let handler = Handler::new(world.open(2).await).with_wait(PATIENT);
    let leader = must(handler.begin(&event("hot")).await, "leading").fresh();
    let deliveries = storm(&handler).await;
    for id in 0..20 {
        let apply = async |tx: &mut _| world.effect(tx, "other").await;
        let event = event(&format!("other/{id}"));
        must(
            handler.handle(&event, apply).await,
            "delivering another event in a storm",
        );
    }
    world.expect(&event("hot"), 0, "other", 20).await;
    if let Some(leader) = leader {
        must(leader.commit().await, "committing the leader");
    }
    all_are_duplicates(deliveries).await;
    world.expect(&event("hot"), 1, "other", 20).await;
    world.done().await;
}

pub(crate) async fn r17_storm_on_two_processes_holds_two_connections<H: Harness>() {
    let world = World::<H>::new().await;
    let first = Handler::new(world.open(50).await).with_wait(PATIENT);
    let second = Handler::new(world.open(50).await).with_wait(PATIENT);
    let leader = must(first.begin(&event("hot")).await, "leading").fresh();
    let quiet = must(world.connections().await, "counting connections");
    let deliveries = storm(&second).await;
    world.until_waiting(1).await;
    let stormy = must(world.connections().await, "counting connections");
    // One for the waiting leader of the second process, and one for what it may need to cancel.
    assert!(
        stormy <= quiet + 2,
        "connections: {quiet} before the storm on a second process, {stormy} in it"
    );
    if let Some(leader) = leader {
        must(leader.commit().await, "committing the leader");
    }
    all_are_duplicates(deliveries).await;
    world.done().await;
}
