//! R11: `apply` ends or replaces its transaction: a distinct error, never `Processed`.

use onceonly::{Claim, ClaimFate, ClaimStore, Event, Handler, StoreErrorKind};

use crate::world::{PATIENT, World, claimed, event, kind, must};
use crate::{Escape, Harness, HarnessError};

/// The claim is where the escape left it, and the next delivery acts on that.
async fn check_fate<H: Harness>(world: &World<H>, store: &H::Store, event: &Event, escape: Escape) {
    let claims = must(world.claims(event).await, "counting claims from outside");
    let durable = escape.claim == ClaimFate::Durable;
    assert_eq!(
        claims,
        u64::from(durable),
        "committed claims after `{}`",
        escape.name
    );
    match must(
        store.claim(event, PATIENT).await,
        "claiming after an escape",
    ) {
        Claim::Duplicate(_) => assert!(durable, "`{}` left no claim behind", escape.name),
        Claim::Fresh(tx) => {
            assert!(!durable, "`{}` made the claim durable", escape.name);
            must(store.commit(tx).await, "committing after an escape");
        }
    }
}

fn ended(escape: Escape) -> StoreErrorKind {
    StoreErrorKind::TransactionEnded {
        claim: escape.claim,
    }
}

pub(crate) async fn r11_every_escape_is_seen_at_commit<H: Harness>() {
    for escape in H::escapes() {
        let world = World::<H>::new().await;
        let store = world.open(1).await;
        let event = event("r11");
        let mut tx = claimed(&*store, &event).await;
        must(world.escape(&mut tx, escape).await, escape.name);
        let answer = kind(store.commit(tx).await, escape.name);
        assert_eq!(answer, ended(*escape), "the commit after `{}`", escape.name);
        check_fate(&world, &store, &event, *escape).await;
        world.done().await;
    }
}

pub(crate) async fn r11_every_escape_is_an_error_of_handle<H: Harness>() {
    for escape in H::escapes() {
        let world = World::<H>::new().await;
        let handler = Handler::new(world.open(1).await).with_wait(PATIENT);
        let event = event("r11");
        let apply = async |tx: &mut _| {
            world.effect(tx, "acme").await?;
            world.escape(tx, escape).await?;
            Ok::<_, HarnessError>(())
        };
        let error = match handler.handle(&event, apply).await {
            Ok(outcome) => panic!("`{}` came out as {outcome:?}", escape.name),
            Err(error) => error,
        };
        let answer = error.as_store().map(|error| error.kind());
        assert_eq!(answer, Some(ended(*escape)), "`{}`: {error:?}", escape.name);
        check_fate(&world, handler.store(), &event, *escape).await;
        world.done().await;
    }
}

/// The reply to the statement that `apply` gave up may still be unread: it must not be taken for the
/// reply to COMMIT, of which there is nothing left to commit.
pub(crate) async fn r11_escape_and_then_a_dropped_statement_is_not_processed<H: Harness>() {
    for fate in [ClaimFate::Absent, ClaimFate::Durable] {
        let mut escapes = H::escapes().iter();
        let Some(escape) = escapes.find(|escape| escape.claim == fate) else {
            continue;
        };
        let world = World::<H>::new().await;
        let handler = Handler::new(world.open(2).await).with_wait(PATIENT);
        let event = event("r11");
        let apply = async |tx: &mut _| {
            world.escape(tx, escape).await?;
            world.drop_slow_statement(tx).await;
            Ok::<_, HarnessError>(())
        };
        if let Ok(outcome) = handler.handle(&event, apply).await {
            panic!("`{}` came out as {outcome:?}", escape.name);
        }
        check_fate(&world, handler.store(), &event, *escape).await;
        world.done().await;
    }
}

pub(crate) async fn r11_rollback_after_an_escape_leaves_nothing_open<H: Harness>() {
    for escape in H::escapes() {
        let world = World::<H>::new().await;
        let store = world.open(1).await;
        let event = event("r11");
        let mut tx = claimed(&*store, &event).await;
        must(world.escape(&mut tx, escape).await, escape.name);
        // Whether it can say so or not: nothing may stay open on the connection.
        let _ = store.rollback(tx).await;
        check_fate(&world, &store, &event, *escape).await;
        world.done().await;
    }
}

pub(crate) async fn r11_drop_after_an_escape_leaves_nothing_open<H: Harness>() {
    for escape in H::escapes() {
        let world = World::<H>::new().await;
        let store = world.open(1).await;
        let event = event("r11");
        let mut tx = claimed(&*store, &event).await;
        must(world.escape(&mut tx, escape).await, escape.name);
        drop(tx);
        check_fate(&world, &store, &event, *escape).await;
        world.done().await;
    }
}
