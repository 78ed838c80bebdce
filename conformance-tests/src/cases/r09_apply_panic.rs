//! R9: a panic in `apply` rolls back and goes on.

use std::sync::Arc;

use onceonly::Handler;

use crate::world::{PATIENT, World, claimed, event, must};
use crate::{Harness, HarnessError, race};

pub(crate) async fn r9_apply_panic_goes_on_and_the_next_delivery_processes<H: Harness>() {
    let world = World::<H>::new().await;
    let handler = Handler::new(world.open(1).await).with_wait(PATIENT);
    for _ in 0..3 {
        let (world, handler) = (world.clone(), handler.clone());
        let delivery = tokio::spawn(async move {
            let apply = async |tx: &mut _| -> Result<(), HarnessError> {
                world.credit(tx, "acme").await;
                panic!("planted");
            };
            handler.handle(&event("r9"), apply).await.map(drop)
        });
        match delivery.await {
            Err(error) if error.is_panic() => {
                let panic = error.into_panic();
                assert_eq!(
                    panic.downcast_ref::<&str>(),
                    Some(&"planted"),
                    "apply's own panic"
                );
            }
            other => panic!("apply's panic came back as {other:?}"),
        }
    }
    assert_eq!(
        handler.in_flight(),
        0,
        "keys in the handler's queue after panics"
    );
    let apply = async |tx: &mut _| world.effect(tx, "acme").await;
    let outcome = must(
        handler.handle(&event("r9"), apply).await,
        "delivering again",
    );
    assert!(
        !outcome.is_duplicate(),
        "a panicked delivery made the next one a duplicate"
    );
    world.expect(&event("r9"), 1, "acme", 1).await;
    world.done().await;
}

pub(crate) async fn r9_panic_with_an_open_transaction_releases_a_waiter<H: Harness>() {
    let world = World::<H>::new().await;
    let store = world.open(4).await;
    let event = event("r9");
    let mut tx = claimed(&*store, &event).await;
    world.credit(&mut tx, "acme").await;
    let racers = race::start(&world, &[Arc::clone(&store)], &event, "acme");
    world.until_waiting(1).await;
    let panicked = tokio::spawn(async move {
        let _tx = tx;
        panic!("planted");
    });
    let panicked: Result<(), _> = panicked.await;
    assert!(panicked.is_err(), "a panic was swallowed");
    race::finish(racers, 1).await;
    world.expect(&event, 1, "acme", 1).await;
    world.done().await;
}
