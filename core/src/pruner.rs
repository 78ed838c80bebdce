//! Deletes claims that are past their keeping.

use std::convert::Infallible;
use std::time::Duration;

use rand::Rng as _;
use tokio::time::sleep;
use tracing::{debug, warn};

use crate::{ClaimStore, StoreError};

/// Deletes old claims, batch by batch, for as long as its task runs.
///
/// Keep claims longer than any provider redelivers and longer than a dead-letter queue may hold an
/// event: once its claim is pruned, a delivery is processed again, and a dead letter that is replayed
/// after that credits twice. Several pruners on one database do no harm.
///
/// ```
/// use onceonly::{MemoryStore, Pruner};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let store = MemoryStore::new();
/// let task = tokio::spawn(Pruner::new(store).run());
/// // … at shutdown:
/// task.abort();
/// # assert!(task.await.unwrap_err().is_cancelled());
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "spawn `run()`, or nothing is pruned"]
pub struct Pruner<S> {
    store: S,
    keep: Duration,
    every: Duration,
    batch: u32,
}

impl<S: ClaimStore> Pruner<S> {
    /// Keeps claims for 30 days, looks every hour, deletes at most 1,000 per transaction.
    pub const fn new(store: S) -> Self {
        Self {
            store,
            keep: Duration::from_secs(30 * 24 * 60 * 60),
            every: Duration::from_secs(60 * 60),
            batch: 1_000,
        }
    }

    /// How long a claim is kept, by the database's clock.
    pub const fn keep(mut self, keep: Duration) -> Self {
        self.keep = keep;
        self
    }

    /// How long to rest between two rounds. Up to a tenth is added at random, so that the instances
    /// of a service don't prune in step.
    pub const fn every(mut self, every: Duration) -> Self {
        self.every = every;
        self
    }

    /// How many claims one transaction deletes at most. Zero is taken as one.
    pub const fn batch(mut self, batch: u32) -> Self {
        self.batch = if batch == 0 { 1 } else { batch };
        self
    }

    /// Deletes all claims that are old now and returns how many.
    ///
    /// # Errors
    ///
    /// As [`ClaimStore::prune`]. What was deleted before an error or a drop stays deleted.
    pub async fn prune(&self) -> Result<u64, StoreError> {
        let mut total = 0;
        loop {
            let deleted = self.store.prune(self.keep, self.batch).await?;
            total += deleted;
            if deleted < u64::from(self.batch) {
                return Ok(total);
            }
            tokio::task::yield_now().await;
        }
    }

    /// Prunes, rests, and begins again, until dropped. An error is logged, and the next round tries
    /// again.
    pub async fn run(self) -> Infallible {
        loop {
            match self.prune().await {
                Ok(pruned) => debug!(pruned, "old claims pruned"),
                Err(error) => warn!(error = %error, "pruning failed, the next round tries again"),
            }
            let jitter = rand::rng().random_range(0.0..0.1);
            sleep(self.every.saturating_add(self.every.mul_f64(jitter))).await;
        }
    }
}
