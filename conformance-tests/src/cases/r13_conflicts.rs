//! R13: conflicts are retried inside while claiming, and told or run again after that.

use std::error::Error;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

use onceonly::{ClaimStore, HandleError, Handler, StoreErrorKind};

use crate::world::{PATIENT, World, begun, claimed, event, kind, must};
use crate::{Harness, HarnessError, race};

/// A team's own error type around the driver's.
#[derive(Debug)]
struct TeamError(HarnessError);

impl fmt::Display for TeamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("crediting failed")
    }
}

impl Error for TeamError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        let source: &(dyn Error + 'static) = &*self.0;
        Some(source)
    }
}

pub(crate) async fn r13_conflict_in_apply_is_told<H: Harness>() {
    let world = World::<H>::new().await;
    let store = world.open(4).await;
    let event = event("r13");
    let mut tx = claimed(&*store, &event).await;
    let conflict = must(world.conflict(&mut tx).await, "running into a conflict");
    let error = TeamError(conflict);
    assert!(
        store.is_conflict(&error),
        "not taken for a conflict: {error:?}"
    );
    let other = TeamError("no conflict".into());
    assert!(
        !store.is_conflict(&other),
        "taken for a conflict: {other:?}"
    );
    drop(tx);
    world.process(&store, &event, "acme").await;
    world.expect(&event, 1, "acme", 1).await;
    world.done().await;
}

pub(crate) async fn r13_conflict_in_apply_is_run_again<H: Harness>() {
    let world = World::<H>::new().await;
    let handler = Handler::new(world.open(4).await).with_wait(PATIENT);
    let event = event("r13");
    let runs = AtomicU32::new(0);
    let apply = async |tx: &mut _| {
        world.effect(tx, "acme").await.map_err(TeamError)?;
        if runs.fetch_add(1, Ordering::Relaxed) == 0 {
            return Err(TeamError(world.conflict(tx).await.map_err(TeamError)?));
        }
        Ok(())
    };
    must(
        handler.handle_retrying(&event, apply).await,
        "delivering with re-runs",
    );
    assert_eq!(runs.load(Ordering::Relaxed), 2, "runs of apply");
    world.expect(&event, 1, "acme", 1).await;
    world.done().await;
}

pub(crate) async fn r13_refused_commit_is_definite<H: Harness>() {
    let world = World::<H>::new().await;
    let store = world.open(2).await;
    let event = event("r13");
    let mut tx = claimed(&*store, &event).await;
    world.credit(&mut tx, "acme").await;
    must(world.refuse_commit(&mut tx).await, "making the commit fail");
    let answer = kind(store.commit(tx).await, "a commit that the database refuses");
    assert_eq!(answer, StoreErrorKind::CommitRefused);
    world.expect(&event, 0, "acme", 0).await;
    world.process(&store, &event, "acme").await;
    world.expect(&event, 1, "acme", 1).await;
    world.done().await;
}

pub(crate) async fn r13_conflict_at_commit_leaves_nothing<H: Harness>() {
    let world = World::<H>::new().await;
    let handler = Handler::new(world.open(2).await).with_wait(PATIENT);
    let event = event("r13");
    let conflicting = async |tx: &mut _| {
        world.effect(tx, "acme").await?;
        world.conflict_at_commit(tx).await
    };
    match handler.handle(&event, conflicting).await {
        Err(HandleError::Store(error)) => {
            assert_eq!(error.kind(), StoreErrorKind::Conflict, "{error}");
            assert!(error.is_retryable(), "{error}");
        }
        other => panic!("a conflict at COMMIT came back as {other:?}"),
    }
    world.expect(&event, 0, "acme", 0).await;
    world.process(handler.store(), &event, "acme").await;
    world.expect(&event, 1, "acme", 1).await;
    world.done().await;
}

pub(crate) async fn r13_conflict_at_commit_is_run_again<H: Harness>() {
    let world = World::<H>::new().await;
    let handler = Handler::new(world.open(2).await).with_wait(PATIENT);
    let event = event("r13");
    let runs = AtomicU32::new(0);
    let apply = async |tx: &mut _| {
        world.effect(tx, "acme").await.map_err(TeamError)?;
        if runs.fetch_add(1, Ordering::Relaxed) == 0 {
            world.conflict_at_commit(tx).await.map_err(TeamError)?;
        }
        Ok::<_, TeamError>(())
    };
    let outcome = must(
        handler.handle_retrying(&event, apply).await,
        "delivering with re-runs",
    );
    assert!(!outcome.is_duplicate(), "of an event that nobody processed");
    assert_eq!(runs.load(Ordering::Relaxed), 2, "runs of apply");
    world.expect(&event, 1, "acme", 1).await;
    world.done().await;
}

pub(crate) async fn r13_conflict_at_commit_settles_nobody_who_queues<H: Harness>() {
    let world = World::<H>::new().await;
    let handler = Handler::new(world.open(2).await).with_wait(PATIENT);
    let event = event("r13");
    let mut open = begun(&handler, &event).await;
    must(
        world.conflict_at_commit(&mut open).await,
        "making the commit conflict",
    );
    let mut delivery = Box::pin(handler.handle(&event, async |tx| world.effect(tx, "acme").await));
    race::queued(delivery.as_mut()).await;
    let answer = kind(open.commit().await, "a commit that conflicts");
    assert_eq!(answer, StoreErrorKind::Conflict);
    let outcome = must(delivery.await, "delivering behind a failed commit");
    assert!(!outcome.is_duplicate(), "of a commit that failed");
    world.expect(&event, 1, "acme", 1).await;
    world.done().await;
}
