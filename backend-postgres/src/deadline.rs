//! A limit on the whole of something that takes several tries.

use std::future::Future;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use tokio::time::{Instant, sleep, timeout_at};

/// Time for the server's answer when the caller doesn't want to wait for others.
const FLOOR: Duration = Duration::from_millis(250);

/// The moment at which `wait` has passed, and the pauses between tries until then.
#[derive(Debug)]
pub(crate) struct Deadline {
    /// None: it lies beyond what the clock can count, so never.
    at: Option<Instant>,
    pauses: ExponentialBackoff,
}

impl Deadline {
    pub(crate) fn new(wait: Duration) -> Self {
        Self {
            at: Instant::now().checked_add(wait.max(FLOOR)),
            pauses: ExponentialBuilder::default()
                .with_min_delay(Duration::from_millis(2))
                .with_max_delay(Duration::from_millis(100))
                .with_jitter()
                .without_max_times()
                .build(),
        }
    }

    /// The answer, or nothing if the deadline passed first.
    pub(crate) async fn limit<T>(&self, answer: impl Future<Output = T>) -> Option<T> {
        match self.at {
            Some(at) => timeout_at(at, answer).await.ok(),
            None => Some(answer.await),
        }
    }

    /// Pauses before the next try, longer each time. False if the deadline has passed.
    pub(crate) async fn pause(&mut self) -> bool {
        let pause = self.pauses.next().unwrap_or(Duration::from_millis(100));
        self.limit(sleep(pause)).await.is_some()
    }
}
