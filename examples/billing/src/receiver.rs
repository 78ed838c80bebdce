//! The whole of it: claim, credit and commit in one transaction, and answer.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use axum::response::Response;
use onceonly::{HandleError, Handler, Pruner};

use crate::answer;
use crate::config::Config;
use crate::database::{Database, Failure};
use crate::delivery::{DeadLetter, Delivery};

/// Receives deliveries on one database. Build one per process; clones share it.
pub struct Receiver<D: Database> {
    database: Arc<D>,
    handler: Handler<D::Store>,
    config: Arc<Config>,
    /// For `BILLING_FAIL_FIRST`: what failed already.
    failed: Arc<Mutex<HashSet<String>>>,
}

impl<D: Database> std::fmt::Debug for Receiver<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Receiver")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl<D: Database> Clone for Receiver<D> {
    fn clone(&self) -> Self {
        Self {
            database: Arc::clone(&self.database),
            handler: self.handler.clone(),
            config: Arc::clone(&self.config),
            failed: Arc::clone(&self.failed),
        }
    }
}

impl<D: Database> Receiver<D> {
    /// A receiver on this database, whose tables are there.
    pub fn new(database: D, config: Config) -> Self {
        let handler = Handler::new(database.store());
        Self {
            database: Arc::new(database),
            handler,
            config: Arc::new(config),
            failed: Arc::default(),
        }
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

    /// Keeps claims for 30 days.
    pub fn pruner(&self) -> Pruner<D::Store> {
        Pruner::new(self.database.store())
    }

    /// Handles one delivery: this is what onceonly is for.
    pub async fn receive(&self, delivery: &Delivery) -> Response {
        let handled = self
            .handler
            .handle(&delivery.event, async |tx| {
                if let Some(credit) = &delivery.credit {
                    if credit.amount <= 0 {
                        return Err(Failure::Amount(credit.amount));
                    }
                    D::credit(tx, &delivery.event, credit).await?;
                }
                self.fail_first(&delivery.event)
            })
            .await;
        if let Err(HandleError::Apply(failure)) = &handled {
            self.bury(delivery, failure).await;
        }
        answer::of(handled)
    }

    /// Replays every dead letter through the same handler; returns how many are done with and how
    /// many stay.
    ///
    /// # Errors
    ///
    /// When the letters can't be read or removed. Those already processed stay processed.
    pub async fn replay(&self) -> Result<(u32, u32), Failure> {
        let (mut done, mut left) = (0, 0);
        for letter in self.database.dead_letters().await? {
            let answered = match Delivery::from_letter(&letter) {
                Ok(delivery) => self.receive(&delivery).await.status().is_success(),
                Err(_) => false,
            };
            if answered {
                self.database
                    .remove_dead_letter(&letter.source, &letter.event_id)
                    .await?;
                done += 1;
            } else {
                left += 1;
            }
        }
        Ok((done, left))
    }

    /// Keeps a failed delivery, in a transaction of its own: the claim's was rolled back.
    async fn bury(&self, delivery: &Delivery, failure: &Failure) {
        let letter = DeadLetter {
            source: delivery.event.source().to_string(),
            event_id: delivery.event.id().to_string(),
            event_type: delivery.event.event_type().map(ToString::to_string),
            body: delivery.body.clone(),
            error: failure.to_string(),
            attempts: 1,
        };
        if let Err(error) = self.database.bury(&letter).await {
            tracing::warn!(event_id = letter.event_id, %error, "dead letter not kept");
        }
    }

    fn fail_first(&self, event: &onceonly::Event) -> Result<(), Failure> {
        let mut hasher = DefaultHasher::new();
        event.hash(&mut hasher);
        if hasher.finish() % 100 >= self.config.fail_first.into() {
            return Ok(());
        }
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if failed.insert(event.id().to_string()) {
            Err(Failure::Planted)
        } else {
            Ok(())
        }
    }
}
