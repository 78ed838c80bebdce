//! How long each part of handling a delivery may take.

use std::time::Duration;

/// The limits of a [`Handler`](crate::Handler).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) wait: Duration,
    pub(crate) apply: Duration,
    pub(crate) settle: Duration,
    pub(crate) reruns: u32,
}

impl Limits {
    /// Two seconds of waiting stay below the three after which Slack gives up on an answer.
    pub(crate) const DEFAULT: Self = Self {
        wait: Duration::from_secs(2),
        apply: Duration::from_secs(30),
        settle: Duration::from_secs(30),
        reruns: 5,
    };
}
