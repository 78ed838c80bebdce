//! The whole of it: claim, credit and commit in one transaction.

use std::sync::Arc;
use std::time::Duration;

use onceonly::{HandleError, Handler, Outcome, Pruner, StoreErrorKind};
use tokio::time::timeout;

use crate::config::Config;
use crate::database::Database;
use crate::dead_letters::{DeadLetter, KEEP_CLAIMS, Replayed};
use crate::delivery::Delivery;
use crate::failure::Failure;
use crate::faults::Faults;

/// What became of a delivery.
pub type Handled = Result<Outcome<()>, HandleError<Failure>>;

/// Receives deliveries on one database. Build one per process; clones share it.
#[derive(Debug)]
pub struct Receiver<D: Database> {
    database: Arc<D>,
    handler: Handler<D::Store>,
    config: Arc<Config>,
    faults: Arc<Faults>,
}

impl<D: Database> Receiver<D> {
    /// A receiver on this database, whose tables are there.
    #[must_use]
    pub fn new(database: D, config: Config) -> Self {
        Self {
            handler: Handler::new(database.store()),
            database: Arc::new(database),
            faults: Arc::new(Faults::new(config.fail_first)),
            config: Arc::new(config),
        }
    }

    /// The same with another limit on waiting for a delivery of the same event.
    #[must_use]
    pub fn with_wait(mut self, wait: Duration) -> Self {
        self.handler = self.handler.with_wait(wait);
        self
    }

    /// The database.
    #[must_use]
    pub fn database(&self) -> &D {
        &self.database
    }

    /// The handler that every delivery and every replay goes through.
    #[must_use]
    pub const fn handler(&self) -> &Handler<D::Store> {
        &self.handler
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What deletes old claims; spawn its `run()`.
    pub fn pruner(&self) -> Pruner<D::Store> {
        Pruner::new(self.database.store()).keep(KEEP_CLAIMS)
    }

    /// Handles one delivery: this is what onceonly is for.
    ///
    /// # Errors
    ///
    /// As [`Handler::handle_retrying`]. When it was the event's own failure, a dead letter is kept.
    pub async fn receive(&self, delivery: &Delivery) -> Handled {
        let handled = self
            .handler
            .handle_retrying(&delivery.event, async |tx| {
                if let Some(credit) = delivery.credit()? {
                    D::credit(tx, &delivery.event, &credit).await?;
                }
                self.faults.plant(&delivery.event)
            })
            .await;
        if let Err(error) = &handled
            && is_the_events_own(error)
        {
            self.keep(delivery, &error.to_string()).await;
        }
        handled
    }

    /// Sends dead letters through [`receive`](Self::receive) again, and removes those that need no
    /// more of it.
    ///
    /// # Errors
    ///
    /// When letters can't be read or removed. What was processed stays so: a letter that is left
    /// over is a duplicate next time.
    pub async fn replay(&self) -> Result<Replayed, Failure> {
        let mut replayed = Replayed::default();
        for letter in self.database.dead_letters().await? {
            let delivery = match letter.delivery() {
                Ok(delivery) => delivery,
                Err(error) => {
                    tracing::error!(event_id = letter.event_id, %error, "unreadable dead letter");
                    replayed.failed += 1;
                    continue;
                }
            };
            match self.receive(&delivery).await {
                Ok(Outcome::Processed(())) => replayed.processed += 1,
                Ok(Outcome::Duplicate(_)) => replayed.duplicates += 1,
                Err(error) => {
                    tracing::warn!(event_id = letter.event_id, %error, "dead letter failed again");
                    replayed.failed += 1;
                    continue;
                }
            }
            self.database.remove_dead_letter(&delivery.event).await?;
        }
        Ok(replayed)
    }

    /// Keeps a failed delivery. Without it the provider's retries are all there is, so it is not
    /// worth a longer wait than the provider's.
    async fn keep(&self, delivery: &Delivery, failure: &str) {
        const LIMIT: Duration = Duration::from_secs(3);
        let letter = DeadLetter::new(delivery, failure);
        let error = match timeout(LIMIT, self.database.keep_dead_letter(&letter)).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("it took longer than {LIMIT:?}"),
        };
        tracing::error!(event_id = letter.event_id, error, "dead letter not kept");
    }
}

/// Whether trying again on a healthy database would fail too.
fn is_the_events_own(error: &HandleError<Failure>) -> bool {
    match error {
        HandleError::Apply(_) => true,
        HandleError::Store(error) => {
            error.kind() == StoreErrorKind::ApplyTimedOut || !error.is_retryable()
        }
        _ => false,
    }
}

// Derived, it would ask for `D: Clone`.
impl<D: Database> Clone for Receiver<D> {
    fn clone(&self) -> Self {
        Self {
            database: Arc::clone(&self.database),
            handler: self.handler.clone(),
            config: Arc::clone(&self.config),
            faults: Arc::clone(&self.faults),
        }
    }
}
