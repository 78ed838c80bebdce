//! R8: an error of `apply` rolls back and comes back unchanged.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use onceonly::{HandleError, Handler, StoreErrorKind};
use tokio::time::timeout;

use crate::world::{PATIENT, World, begun, duplicate, event, must};
use crate::{Harness, HarnessError, race};

pub(crate) async fn r8_apply_error_comes_back_and_the_next_delivery_processes<H: Harness>() {
    let world = World::<H>::new().await;
    let handler = Handler::new(world.open(2).await).with_wait(PATIENT);
    let event = event("r8");
    for attempt in 0..3 {
        let apply = async |tx: &mut _| {
            world.effect(tx, "acme").await?;
            Err::<(), _>(HarnessError::from(format!("attempt {attempt}")))
        };
        match handler.handle(&event, apply).await {
            Err(HandleError::Apply(error)) => {
                assert_eq!(
                    error.to_string(),
                    format!("attempt {attempt}"),
                    "apply's own error"
                );
            }
            other => panic!("apply's error came back as {other:?}"),
        }
        world.expect(&event, 0, "acme", 0).await;
    }
    let apply = async |tx: &mut _| world.effect(tx, "acme").await;
    let outcome = must(handler.handle(&event, apply).await, "delivering again");
    assert!(
        !outcome.is_duplicate(),
        "a failed delivery made the next one a duplicate"
    );
    world.expect(&event, 1, "acme", 1).await;
    duplicate(&**handler.store(), &event).await;
    world.done().await;
}

pub(crate) async fn r8_failed_delivery_lets_a_waiter_process<H: Harness>() {
    let world = World::<H>::new().await;
    let store = world.open(4).await;
    let handler = Handler::new(Arc::clone(&store)).with_wait(PATIENT);
    let event = event("r8");
    let mut racers = None;
    let apply = async |tx: &mut _| {
        world.effect(tx, "acme").await?;
        racers = Some(race::start(&world, &[Arc::clone(&store)], &event, "acme"));
        if H::capabilities().single_primary {
            world.until_waiting(1).await;
        }
        Err::<(), _>(HarnessError::from("planted"))
    };
    let failed = handler.handle(&event, apply).await;
    assert!(
        matches!(failed, Err(HandleError::Apply(_))),
        "apply's error came back as {failed:?}"
    );
    if let Some(racers) = racers {
        race::finish(racers, 1).await;
    }
    world.expect(&event, 1, "acme", 1).await;
    world.done().await;
}

pub(crate) async fn r8_failed_delivery_lets_one_that_queues_in_its_handler_process<H: Harness>() {
    let world = World::<H>::new().await;
    let handler = Handler::new(world.open(2).await).with_wait(PATIENT);
    let event = event("r8");
    let mut open = begun(&handler, &event).await;
    world.credit(&mut open, "acme").await;
    let mut delivery = Box::pin(handler.handle(&event, async |tx| world.effect(tx, "acme").await));
    race::queued(delivery.as_mut()).await;
    must(open.rollback().await, "rolling back");
    let outcome = must(delivery.await, "delivering behind a failed one");
    assert!(!outcome.is_duplicate(), "of a delivery that rolled back");
    world.expect(&event, 1, "acme", 1).await;
    world.done().await;
}

pub(crate) async fn r8_apply_that_takes_too_long_is_rolled_back<H: Harness>() {
    let world = World::<H>::new().await;
    let limit = Duration::from_millis(200);
    let handler = Handler::new(world.open(2).await).with_apply_limit(limit);
    let event = event("r8");
    let endless = async |tx: &mut _| {
        world.effect(tx, "acme").await?;
        pending::<Result<(), HarnessError>>().await
    };
    let delivery = timeout(PATIENT, handler.handle(&event, endless)).await;
    match must(delivery, "waiting for the limit on apply") {
        Err(HandleError::Store(error)) => {
            assert_eq!(error.kind(), StoreErrorKind::ApplyTimedOut, "{error}");
        }
        other => panic!("an apply that never ends came back as {other:?}"),
    }
    world.expect(&event, 0, "acme", 0).await;
    world.process(handler.store(), &event, "acme").await;
    world.expect(&event, 1, "acme", 1).await;
    world.done().await;
}
