//! R18: a savepoint inside `apply` rolls back without harming the claim.

use onceonly::{ClaimStore, Handler};

use crate::world::{PATIENT, World, claimed, duplicate, event, must};
use crate::{Harness, HarnessError};

pub(crate) async fn r18_savepoint_rolls_back_without_harming_the_claim<H: Harness>() {
    let world = World::<H>::new().await;
    let store = world.open(2).await;
    let bare = event("r18/bare");
    let mut tx = claimed(&*store, &bare).await;
    must(
        world.savepoint(&mut tx, "undone").await,
        "rolling back to a savepoint",
    );
    world.credit(&mut tx, "acme").await;
    must(
        world.savepoint(&mut tx, "undone").await,
        "rolling back to a savepoint",
    );
    must(store.commit(tx).await, "committing after savepoints");
    world.expect(&bare, 1, "acme", 1).await;
    world.expect(&bare, 1, "undone", 0).await;

    let handler = Handler::new(store).with_wait(PATIENT);
    let handled = event("r18/handled");
    let apply = async |tx: &mut _| {
        world.effect(tx, "acme").await?;
        world.savepoint(tx, "undone").await?;
        Ok::<_, HarnessError>(())
    };
    must(
        handler.handle(&handled, apply).await,
        "delivering with savepoints",
    );
    world.expect(&handled, 1, "acme", 2).await;
    world.expect(&handled, 1, "undone", 0).await;
    duplicate(&**handler.store(), &handled).await;
    world.done().await;
}
