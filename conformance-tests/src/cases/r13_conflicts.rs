//! R13: conflicts are retried inside while claiming, and told or run again after that.

use std::error::Error;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

use onceonly::{ClaimStore, Handler, StoreErrorKind};

use crate::world::{PATIENT, World, claimed, event, kind, must};
use crate::{Harness, HarnessError};

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
