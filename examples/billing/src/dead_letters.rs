//! Deliveries whose `apply` failed, kept so that none is lost when the provider gives up.
//!
//! A letter is written in a transaction of its own, after the claim's was rolled back, and the
//! provider is still told to retry. When a retry is processed the letter stays until the next
//! replay, which finds a duplicate and removes it.

use std::time::Duration;

use onceonly::{Event, InvalidKey};
use serde::Serialize;

use crate::delivery::{Delivery, Headers};
use crate::failure::Failure;

/// How long claims are kept.
pub const KEEP_CLAIMS: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Letters that failed last before this many days are not replayed: the event may have been
/// processed since, and its claim pruned.
pub const REPLAY_DAYS: i32 = 29;

/// Letters of one replay. Those that fail again go to the end of the queue.
pub const REPLAY_BATCH: i64 = 100;

/// A delivery that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeadLetter {
    /// Who sent it.
    pub source: String,
    /// The event's id.
    pub event_id: String,
    /// The event's type.
    pub event_type: Option<String>,
    /// Its headers, as JSON.
    #[serde(skip)]
    pub headers: String,
    /// Its body, byte for byte.
    #[serde(skip)]
    pub body: Vec<u8>,
    /// Why it failed last.
    pub error: String,
    /// How often it failed.
    pub attempts: i64,
}

impl DeadLetter {
    /// The letter of a delivery that failed once.
    #[must_use]
    pub fn new(delivery: &Delivery, failure: &str) -> Self {
        Self {
            source: delivery.event.source().to_string(),
            event_id: delivery.event.id().to_string(),
            event_type: delivery.event.event_type().map(ToString::to_string),
            headers: serde_json::json!(delivery.headers).to_string(),
            body: delivery.body.to_vec(),
            error: failure
                .replace('\0', "\u{fffd}")
                .chars()
                .take(1_000)
                .collect(),
            attempts: 1,
        }
    }

    /// Which event it is.
    ///
    /// # Errors
    ///
    /// When the letter was changed since.
    pub fn event(&self) -> Result<Event, InvalidKey> {
        let event = Event::new(self.source.as_str(), self.event_id.as_str())?;
        match &self.event_type {
            Some(event_type) => event.with_type(event_type.as_str()),
            None => Ok(event),
        }
    }

    /// The delivery to send again.
    ///
    /// # Errors
    ///
    /// [`Failure::Rejected`] when the letter was changed since.
    pub fn delivery(&self) -> Result<Delivery, Failure> {
        let changed = |error: &dyn std::fmt::Display| Failure::Rejected(error.to_string());
        Ok(Delivery {
            event: self.event().map_err(|error| changed(&error))?,
            headers: serde_json::from_str::<Headers>(&self.headers)
                .map_err(|error| changed(&error))?,
            body: self.body.clone().into(),
        })
    }
}

/// What a replay came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Replayed {
    /// Letters that were processed now.
    pub processed: u32,
    /// Letters whose event had been processed before.
    pub duplicates: u32,
    /// Letters that failed again, and stay.
    pub failed: u32,
}
