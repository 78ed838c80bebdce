//! R10: `apply` hides a statement error that doomed the transaction: never `Processed`.

use onceonly::{ClaimStore, Handler, StoreErrorKind};

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
