//! R5: any future, and the transaction, may be dropped at any await.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use onceonly::{ClaimStore, Handler, StoreErrorKind};
use tokio::runtime::Builder;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

use crate::drops::after;
use crate::world::{PATIENT, World, claimed, duplicate, event, must};
use crate::{Harness, HarnessError, race};

pub(crate) use super::r05_every_poll::{
    r5_claim_dropped_at_every_poll_claims_nothing,
    r5_claim_of_a_held_key_dropped_at_every_poll_claims_nothing,
    r5_commit_dropped_at_every_poll_is_all_or_nothing,
    r5_handle_dropped_at_every_poll_is_all_or_nothing,
    r5_prune_dropped_at_every_poll_harms_nothing, r5_rollback_dropped_at_every_poll_rolls_back,
};

pub(crate) async fn r5_dropped_transaction_frees_the_key<H: Harness>() {
    let world = World::<H>::new().await;
    let store = world.open(1).await;
    let event = event("r5");
    for _ in 0..5 {
        let mut tx = claimed(&*store, &event).await;
        world.credit(&mut tx, "acme").await;
        drop(tx);
    }
    world.process(&store, &event, "acme").await;
    world.expect(&event, 1, "acme", 1).await;
    world.done().await;
}

pub(crate) async fn r5_dropped_transaction_releases_a_waiter<H: Harness>() {
    let world = World::<H>::new().await;
    let store = world.open(4).await;
    let event = event("r5");
    let mut tx = claimed(&*store, &event).await;
    world.credit(&mut tx, "acme").await;
    let racers = race::start(&world, &[Arc::clone(&store)], &event, "acme");
    world.until_waiting(1).await;
    drop(tx);
    race::finish(racers, 1).await;
    world.expect(&event, 1, "acme", 1).await;
    world.done().await;
}

pub(crate) async fn r5_claim_dropped_while_waiting_leaves_the_queue<H: Harness>() {
    let world = World::<H>::new().await;
    let store = world.open(3).await;
    let event = event("r5");
    let tx = claimed(&*store, &event).await;
    for _ in 0..3 {
        let mut racers = race::start(&world, &[Arc::clone(&store)], &event, "acme");
        world.until_waiting(1).await;
        racers.shutdown().await;
        while must(world.waiting().await, "asking who waits") > 0 {
            sleep(Duration::from_millis(2)).await;
        }
    }
    must(store.rollback(tx).await, "rolling back");
    world.process(&store, &event, "acme").await;
    world.expect(&event, 1, "acme", 1).await;
    world.done().await;
}

pub(crate) async fn r5_drops_do_not_exhaust_a_pool_of_one<H: Harness>() {
    let world = World::<H>::new().await;
    let store = world.open(1).await;
    for turn in 0..20 {
        let event = event(&format!("r5/{turn}"));
        let mut tx = claimed(&*store, &event).await;
        if turn % 2 == 0 {
            world.credit(&mut tx, "acme").await;
        }
        drop(tx);
        drop(after(turn % 5, store.claim(&event, PATIENT)).await);
    }
    world.process(&store, &event("last"), "acme").await;
    world.expect(&event("last"), 1, "acme", 1).await;
    world.done().await;
}

pub(crate) async fn r5_statement_in_flight_is_given_up_when_the_transaction_is_dropped<
    H: Harness,
>() {
    let world = World::<H>::new().await;
    let store = world.open(1).await;
    let event = event("r5");
    let mut tx = claimed(&*store, &event).await;
    world.credit(&mut tx, "acme").await;
    let slow = timeout(
        Duration::from_millis(200),
        world.slow_statement(&mut tx, 45),
    )
    .await;
    assert!(slow.is_err(), "the slow statement was not slow");
    drop(tx);
    let freed = store.claim(&event, Duration::from_secs(20)).await;
    let tx = must(
        freed,
        "claiming while the statement of a dropped transaction may still run",
    );
    assert!(!tx.is_duplicate(), "a dropped transaction left its claim");
    drop(tx);
    world.process(&store, &event, "acme").await;
    world.expect(&event, 1, "acme", 1).await;
    world.done().await;
}

pub(crate) async fn r5_statement_dropped_inside_apply_never_fakes_an_answer<H: Harness>() {
    let world = World::<H>::new().await;
    let handler = Handler::new(world.open(2).await).with_wait(PATIENT);
    let event = event("r5");
    let apply = async |tx: &mut _| {
        world.effect(tx, "acme").await?;
        world.drop_slow_statement(tx).await;
        Ok::<_, HarnessError>(())
    };
    match handler.handle(&event, apply).await {
        Ok(outcome) => {
            assert!(!outcome.is_duplicate(), "the first delivery is a duplicate");
            world.expect(&event, 1, "acme", 1).await;
        }
        Err(error) => {
            let unknown = error.as_store().map(|error| error.kind());
            if unknown != Some(StoreErrorKind::CommitUnknown) {
                world.expect(&event, 0, "acme", 0).await;
            }
            let plainly = async |tx: &mut _| world.effect(tx, "acme").await;
            must(handler.handle(&event, plainly).await, "delivering again");
            world.expect(&event, 1, "acme", 1).await;
        }
    }
    duplicate(&**handler.store(), &event).await;
    world.done().await;
}

pub(crate) async fn r5_dropping_outside_a_runtime_does_not_panic<H: Harness>() {
    let world = World::<H>::new().await;
    let store = world.open(1).await;
    let event = event("r5");
    let tx = claimed(&*store, &event).await;
    assert!(
        thread::spawn(move || drop(tx)).join().is_ok(),
        "dropping outside a runtime panicked"
    );
    drop(store);

    let (inner, key) = (world.clone(), event.clone());
    let dropped = spawn_blocking(move || {
        let runtime = must(
            Builder::new_multi_thread().enable_all().build(),
            "a runtime",
        );
        let (store, mut tx) = runtime.block_on(async {
            let store = inner.open(1).await;
            let tx = claimed(&*store, &key).await;
            (store, tx)
        });
        runtime.block_on(inner.credit(&mut tx, "nobody"));
        runtime.shutdown_background();
        drop(tx);
        drop(store);
    });
    must(dropped.await, "dropping after the runtime's shutdown");
    let store = world.open(1).await;
    world.process(&store, &event, "acme").await;
    world.expect(&event, 1, "acme", 1).await;
    world.expect(&event, 1, "nobody", 0).await;
    world.done().await;
}

pub(crate) async fn r5_dropped_transaction_releases_eight_waiters<H: Harness>() {
    let world = World::<H>::new().await;
    let store = world.open(10).await;
    let event = event("r5");
    let mut tx = claimed(&*store, &event).await;
    world.credit(&mut tx, "acme").await;
    let racers = race::start(&world, &vec![Arc::clone(&store); 8], &event, "acme");
    world.until_waiting(8).await;
    drop(tx);
    race::finish(racers, 1).await;
    world.expect(&event, 1, "acme", 1).await;
    world.done().await;
}

pub(crate) async fn r5_delivery_dropped_in_a_statement_frees_the_key<H: Harness>() {
    let world = World::<H>::new().await;
    let handler = Handler::new(world.open(1).await).with_wait(Duration::from_secs(20));
    let event = event("r5");
    let slowly = async |tx: &mut _| {
        world.effect(tx, "acme").await?;
        world.slow_statement(tx, 45).await
    };
    let slow = timeout(Duration::from_millis(300), handler.handle(&event, slowly)).await;
    assert!(slow.is_err(), "the slow statement was not slow");
    let apply = async |tx: &mut _| world.effect(tx, "acme").await;
    let next = must(
        handler.handle(&event, apply).await,
        "delivering while the statement of a dropped delivery may still run",
    );
    assert!(!next.is_duplicate(), "a dropped delivery left its claim");
    world.expect(&event, 1, "acme", 1).await;
    world.done().await;
}
