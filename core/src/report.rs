//! What a handler tells `tracing` about a delivery.

use std::time::Duration;

use tokio::time::Instant;
use tracing::{debug, error, info, warn};

use crate::{Event, StoreError, StoreErrorKind};

/// Tells the log what became of one delivery, always with the same fields.
pub(crate) struct Report<'a> {
    event: &'a Event,
    started: Instant,
    waited: Option<Duration>,
}

macro_rules! tell {
    ($level:ident, $report:expr, $outcome:literal $(, $field:ident = $value:expr)*; $message:literal) => {
        $level!(
            source = %$report.event.source(),
            event_id = %$report.event.id(),
            event_type = $report.event.event_type().map(display),
            outcome = $outcome,
            waited = ?$report.waited.unwrap_or_else(|| $report.started.elapsed()),
            $($field = $value,)*
            $message
        )
    };
}

impl<'a> Report<'a> {
    pub(crate) fn new(event: &'a Event) -> Self {
        Self {
            event,
            started: Instant::now(),
            waited: None,
        }
    }

    /// For what follows a claim that took `waited`.
    pub(crate) fn after(event: &'a Event, waited: Duration) -> Self {
        Self {
            waited: Some(waited),
            ..Self::new(event)
        }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    pub(crate) fn claimed(&self) {
        tell!(debug, self, "claimed"; "event claimed");
    }

    pub(crate) fn duplicate(&self) {
        tell!(debug, self, "duplicate"; "duplicate delivery");
    }

    pub(crate) fn claim_failed(&self, error: &StoreError) {
        match error.kind() {
            StoreErrorKind::InFlight => {
                tell!(info, self, "in_flight"; "event in flight elsewhere");
            }
            _ => tell!(warn, self, "claim_failed", error = display(error); "event not claimed"),
        }
    }

    pub(crate) fn committed(&self, result: &Result<(), StoreError>) {
        match result {
            Ok(()) => tell!(debug, self, "processed"; "event processed"),
            Err(error) => match error.kind() {
                StoreErrorKind::TransactionEnded { .. } => {
                    tell!(error, self, "transaction_ended", error = display(error); "apply ended the claim's transaction");
                }
                _ => tell!(warn, self, "commit_failed", error = display(error); "commit failed"),
            },
        }
    }

    pub(crate) fn rolled_back(&self, cause: Option<&StoreError>, result: &Result<(), StoreError>) {
        match cause {
            Some(error) => {
                tell!(warn, self, "apply_timed_out", error = display(error); "apply timed out")
            }
            None => tell!(info, self, "apply_failed"; "apply failed and was rolled back"),
        }
        if let Err(error) = result {
            tell!(warn, self, "rollback_failed", error = display(error); "rollback left to the database");
        }
    }

    pub(crate) fn rerun(&self, pause: Duration) {
        tell!(info, self, "rerun", pause = debug(pause); "conflict, apply runs again");
    }
}
