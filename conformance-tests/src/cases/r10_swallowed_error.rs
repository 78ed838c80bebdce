//! R10: `apply` hides a statement error that doomed the transaction: never `Processed`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use onceonly::{ClaimStore, Handler, StoreErrorKind};
use tokio::task::JoinSet;

use crate::world::{PATIENT, World, claimed, event, kind, must};
use crate::{Harness, HarnessError};

pub(crate) async fn r10_doomed_transaction_is_not_committed<H: Harness>() {
    let world = World::<H>::new().await;
    let store = world.open(1).await;
    let event = event("r10");
    let mut tx = claimed(&*store, &event).await;
    world.credit(&mut tx, "acme").await;
    must(world.doom(&mut tx).await, "dooming the transaction");
    let answer = kind(store.commit(tx).await, "the commit of a doomed transaction");
    assert_eq!(answer, StoreErrorKind::TransactionDoomed);
    world.expect(&event, 0, "acme", 0).await;
    world.process(&store, &event, "acme").await;
    world.expect(&event, 1, "acme", 1).await;
    world.done().await;
}

pub(crate) async fn r10_doomed_transaction_is_not_processed<H: Harness>() {
    let world = World::<H>::new().await;
    let handler = Handler::new(world.open(1).await).with_wait(PATIENT);
    let event = event("r10");
    let apply = async |tx: &mut _| {
        world.effect(tx, "acme").await?;
        world.doom(tx).await?;
        Ok::<_, HarnessError>(())
    };
    let error = match handler.handle(&event, apply).await {
        Ok(outcome) => panic!("a doomed transaction came out as {outcome:?}"),
        Err(error) => error,
    };
    let doomed = error.as_store().map(|error| error.kind());
    assert_eq!(doomed, Some(StoreErrorKind::TransactionDoomed), "{error:?}");
    world.expect(&event, 0, "acme", 0).await;
    let apply = async |tx: &mut _| world.effect(tx, "acme").await;
    must(handler.handle(&event, apply).await, "delivering again");
    world.expect(&event, 1, "acme", 1).await;
    world.done().await;
}

pub(crate) async fn r10_doomed_delivery_settles_nobody_who_waits<H: Harness>() {
    let world = World::<H>::new().await;
    let handler = Handler::new(world.open(4).await).with_wait(PATIENT);
    let runs = Arc::new(AtomicU32::new(0));
    let mut deliveries = JoinSet::new();
    for _ in 0..6 {
        let (world, handler, runs) = (world.clone(), handler.clone(), Arc::clone(&runs));
        deliveries.spawn(async move {
            let apply = async |tx: &mut _| {
                world.effect(tx, "acme").await?;
                if runs.fetch_add(1, Ordering::SeqCst) < 2 {
                    world.doom(tx).await?;
                }
                Ok::<_, HarnessError>(())
            };
            handler.handle(&event("r10"), apply).await.is_err()
        });
    }
    let failed = deliveries.join_all().await;
    let failed = failed.into_iter().filter(|failed| *failed).count();
    assert_eq!(
        (failed, runs.load(Ordering::SeqCst)),
        (2, 3),
        "(deliveries that failed, runs of apply) with the first two doomed"
    );
    world.expect(&event("r10"), 1, "acme", 1).await;
    world.done().await;
}
