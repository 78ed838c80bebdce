//! How long a claim may wait, all its tries together.

use std::time::Duration;

use tokio::time::Instant;

/// The time that a request and its answer may take on the network.
pub(crate) const GRACE: Duration = Duration::from_millis(250);
/// One try waits for locks no longer than this, so that a server that vanished is noticed.
const LONGEST_TRY: u64 = 30;
const LONGEST_ANSWER: Duration = Duration::from_secs(LONGEST_TRY + 5);

/// The clock of one claim.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    started: Instant,
    /// `None`: without a limit.
    deadline: Option<Instant>,
}

/// The limits of one try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Try {
    /// InnoDB counts whole seconds, and at least one.
    pub(crate) lock_wait_seconds: u64,
    /// When to stop waiting for the answer.
    pub(crate) answer_within: Duration,
    /// Whether the budget is used up when the answer did not come.
    pub(crate) last: bool,
}

impl Budget {
    pub(crate) fn start(wait: Duration) -> Self {
        let started = Instant::now();
        Self {
            started,
            deadline: started.checked_add(wait),
        }
    }

    fn remaining(&self) -> Duration {
        self.deadline.map_or(Duration::MAX, |deadline| {
            deadline.saturating_duration_since(Instant::now())
        })
    }

    /// Whether all of it has passed.
    pub(crate) fn is_spent(&self) -> bool {
        self.remaining().is_zero()
    }

    /// How long to pause before a retry after a conflict, `None` when there is no time for one. Even
    /// a claim that doesn't wait may lose a deadlock, and is tried again for as long as an answer
    /// may take.
    pub(crate) fn pause(&self, wish: Duration) -> Option<Duration> {
        let remaining = self
            .remaining()
            .max(GRACE.saturating_sub(self.started.elapsed()));
        (!remaining.is_zero()).then(|| wish.min(remaining))
    }

    pub(crate) fn plan(&self) -> Try {
        plan(self.remaining())
    }
}

fn plan(remaining: Duration) -> Try {
    if remaining.as_secs() >= LONGEST_TRY {
        return Try {
            lock_wait_seconds: LONGEST_TRY,
            answer_within: LONGEST_ANSWER,
            last: false,
        };
    }
    let seconds = (remaining.as_secs() + u64::from(remaining.subsec_nanos() > 0)).max(1);
    let timeout = Duration::from_secs(seconds);
    // The server's own timeout leaves a connection that can be used again, so it goes first where
    // it comes in time.
    let answer_within = if timeout - remaining <= GRACE {
        timeout + GRACE
    } else {
        remaining.max(GRACE)
    };
    Try {
        lock_wait_seconds: seconds,
        answer_within,
        last: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_try_never_waits_for_no_seconds_and_never_overflows() {
        for millis in [0, 1, 250, 1_000, 1_999, 29_999] {
            let remaining = Duration::from_millis(millis);
            let plan = plan(remaining);
            assert!(plan.lock_wait_seconds >= 1 && plan.last);
            assert!(plan.answer_within >= remaining.max(GRACE));
            assert!(
                plan.answer_within <= remaining + 2 * GRACE,
                "{plan:?} for {remaining:?}"
            );
        }
        assert!(!plan(Duration::MAX).last);
        assert_eq!(plan(Duration::MAX).lock_wait_seconds, LONGEST_TRY);
    }

    #[tokio::test]
    async fn an_endless_wait_has_no_deadline() {
        let budget = Budget::start(Duration::MAX);
        assert!(!budget.is_spent());
        assert_eq!(budget.pause(GRACE), Some(GRACE));
    }
}
