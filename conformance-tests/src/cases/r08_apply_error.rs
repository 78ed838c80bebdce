//! R8: an error of `apply` rolls back and comes back unchanged.

use std::sync::Arc;

use onceonly::{HandleError, Handler};

use crate::world::{PATIENT, World, duplicate, event, must};
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
