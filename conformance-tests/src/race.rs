//! Racing claims of one key.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use onceonly::{Claim, ClaimStore, Event, StoreError};
use tokio::task::JoinSet;

use crate::Harness;
use crate::world::{PATIENT, World};

/// What one racer came to.
#[derive(Debug)]
pub(crate) enum Raced {
    Processed,
    Duplicate,
    Failed(StoreError),
}

/// Sends a racer per store against a key that is held; each that claims credits `account` once.
pub(crate) fn start<H: Harness>(
    world: &World<H>,
    stores: &[Arc<H::Store>],
    event: &Event,
    account: &'static str,
) -> JoinSet<Raced> {
    let mut racers = JoinSet::new();
    for store in stores {
        let (world, store, event) = (world.clone(), Arc::clone(store), event.clone());
        racers.spawn(async move {
            match store.claim(&event, PATIENT).await {
                Ok(Claim::Duplicate(_)) => Raced::Duplicate,
                Ok(Claim::Fresh(mut tx)) => {
                    world.credit(&mut tx, account).await;
                    match store.commit(tx).await {
                        Ok(()) => Raced::Processed,
                        Err(error) => Raced::Failed(error),
                    }
                }
                Err(error) => Raced::Failed(error),
            }
        });
    }
    racers
}

/// Waits for all racers: exactly `processed` of them processed, and the others are duplicates.
pub(crate) async fn finish(racers: JoinSet<Raced>, processed: usize) {
    let results = racers.join_all().await;
    let count = results
        .iter()
        .filter(|raced| matches!(raced, Raced::Processed))
        .count();
    let errors = |raced: &'_ Raced| match raced {
        Raced::Failed(error) => Some(format!("{error:?}")),
        Raced::Processed | Raced::Duplicate => None,
    };
    let failed: Vec<String> = results.iter().filter_map(errors).collect();
    assert!(
        failed.is_empty(),
        "no racer may see an error, but {} did: {failed:?}",
        failed.len()
    );
    assert_eq!(
        count,
        processed,
        "{count} of {} racers processed",
        results.len()
    );
}

/// Polls a delivery once, which brings it into its handler's queue, and finds that it waits there.
pub(crate) async fn queued<F: Future>(mut delivery: Pin<&mut F>) {
    let answered = poll_fn(|context| Poll::Ready(delivery.as_mut().poll(context).is_ready())).await;
    assert!(
        !answered,
        "a delivery was answered while another one of its event is open in the same handler"
    );
}
