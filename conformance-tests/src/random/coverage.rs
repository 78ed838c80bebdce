//! Whether random runs saw what they are for.

use std::fmt;

use super::delivery::{Answer, Phase};

/// How often each thing that matters happened.
#[derive(Debug, Default)]
pub(crate) struct Coverage {
    deliveries: u32,
    waited_then_duplicate: u32,
    waited_then_processed: u32,
    in_flight: u32,
    failed: u32,
    panicked: u32,
    dropped_in_claim: u32,
    dropped_in_apply: u32,
    dropped_in_commit: u32,
    pruned: u32,
}

impl Coverage {
    pub(super) fn count(&mut self, answer: &Answer, waited: bool) {
        self.deliveries += 1;
        match answer {
            Answer::Processed if waited => self.waited_then_processed += 1,
            Answer::Duplicate if waited => self.waited_then_duplicate += 1,
            Answer::Processed | Answer::Duplicate | Answer::Error(_) => {}
            Answer::InFlight | Answer::InFlightTooSoon(_) => self.in_flight += 1,
            Answer::Failed => self.failed += 1,
            Answer::Panicked => self.panicked += 1,
            Answer::Dropped(Phase::Claiming) => self.dropped_in_claim += 1,
            Answer::Dropped(Phase::Applying) => self.dropped_in_apply += 1,
            Answer::Dropped(Phase::Committing) => self.dropped_in_commit += 1,
        }
    }

    pub(super) const fn pruned(&mut self, claims: u32) {
        self.pruned += claims;
    }

    /// Fails unless everything happened at least `each` times.
    pub(crate) fn require(&self, each: u32) {
        let required = [
            ("waited, then duplicate", self.waited_then_duplicate),
            ("waited, then processed", self.waited_then_processed),
            ("in flight", self.in_flight),
            ("apply failed", self.failed),
            ("apply panicked", self.panicked),
            ("dropped in claim", self.dropped_in_claim),
            ("dropped in apply", self.dropped_in_apply),
            ("dropped in commit", self.dropped_in_commit),
            ("pruned", self.pruned),
        ];
        for (what, count) in required {
            assert!(
                count >= each,
                "the random runs prove nothing: `{what}` happened {count} times, less than {each}; \
                 raise ONCEONLY_CASES ({self})"
            );
        }
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} deliveries; waited then duplicate {}, waited then processed {}, in flight {}, \
             failed {}, panicked {}, dropped in claim {}, in apply {}, in commit {}, pruned {}",
            self.deliveries,
            self.waited_then_duplicate,
            self.waited_then_processed,
            self.in_flight,
            self.failed,
            self.panicked,
            self.dropped_in_claim,
            self.dropped_in_apply,
            self.dropped_in_commit,
            self.pruned
        )
    }
}
