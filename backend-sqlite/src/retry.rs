//! Asking again for a lock that another process holds.

use std::iter;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use tokio::time::{Instant, sleep_until};

/// Pauses of 1 ms that grow to 8 ms, each with as much again of jitter at most, up to a deadline.
///
/// SQLite's own busy handler would sleep on a blocking thread and go on after its future was
/// dropped.
pub(crate) struct Retry {
    pauses: iter::Fuse<ExponentialBackoff>,
    deadline: Option<Instant>,
}

impl Retry {
    const LONGEST: Duration = Duration::from_millis(8);

    /// `None` never ends.
    pub(crate) fn until(deadline: Option<Instant>) -> Self {
        let pauses = ExponentialBuilder::default()
            .with_min_delay(Duration::from_millis(1))
            .with_max_delay(Self::LONGEST)
            .without_max_times()
            .with_jitter()
            .build();
        Self {
            pauses: pauses.fuse(),
            deadline,
        }
    }

    pub(crate) fn within(limit: Duration) -> Self {
        Self::until(Instant::now().checked_add(limit))
    }

    /// Pauses. `false`, at once, when the deadline has passed.
    pub(crate) async fn pause(&mut self) -> bool {
        let now = Instant::now();
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            return false;
        }
        let until = now + self.pauses.next().unwrap_or(Self::LONGEST);
        sleep_until(self.deadline.map_or(until, |deadline| deadline.min(until))).await;
        true
    }
}
