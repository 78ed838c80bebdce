//! Failures that a test plants, with `BILLING_FAIL_FIRST`.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

use onceonly::Event;

use crate::failure::Failure;

/// Makes a percentage of the events fail once.
#[derive(Debug)]
pub(crate) struct Faults {
    percent: u8,
    failed: Mutex<HashSet<Event>>,
}

impl Faults {
    pub(crate) fn new(percent: u8) -> Self {
        Self {
            percent,
            failed: Mutex::default(),
        }
    }

    /// Fails the first time that it is asked about an event whose turn it is.
    pub(crate) fn plant(&self, event: &Event) -> Result<(), Failure> {
        let mut hasher = DefaultHasher::new();
        event.hash(&mut hasher);
        if hasher.finish() % 100 >= self.percent.into() {
            return Ok(());
        }
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if failed.insert(event.clone()) {
            return Err(Failure::Planted);
        }
        Ok(())
    }
}
