//! What may be committed after a run, and what is.

use onceonly::Event;

use super::delivery::{Answer, Phase};
use crate::Harness;
use crate::world::World;

/// A delivery that ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) event: u8,
    pub(super) account: String,
    pub(super) answer: Answer,
}

/// What all runs of a world together committed and pruned.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    effects: u64,
    claims: u64,
    pub(super) pruned: u64,
}

impl Totals {
    /// Each effect has its claim, or its claim was pruned.
    pub(crate) fn check(&self) {
        assert_eq!(
            self.effects,
            self.claims + self.pruned,
            "effects, and claims that are there or were pruned: {self:?}"
        );
    }

    /// Checks one event of a run by the answers that its deliveries gave. `aged` is how often a
    /// claim of it was made old enough to be pruned.
    pub(super) async fn check_event<H: Harness>(
        &mut self,
        world: &World<H>,
        event: &Event,
        deliveries: &[&Ended],
        aged: u64,
    ) {
        let (claims, _) = world.committed(event, "nobody").await;
        let mut effects = 0;
        for delivery in deliveries {
            let (_, committed) = world.committed(event, &delivery.account).await;
            let allowed = match &delivery.answer {
                Answer::Processed => 1..=1,
                Answer::Dropped(Phase::Committing) => 0..=1,
                Answer::Error(error) => panic!("a delivery of {event:?} got an error: {error:?}"),
                Answer::InFlightTooSoon(after) => {
                    panic!("a delivery of {event:?} gave up after {after:?}, long before its wait")
                }
                _ => 0..=0,
            };
            assert!(
                allowed.contains(&committed),
                "{committed} effects of a delivery of {event:?} that ended as {delivery:?}"
            );
            effects += committed;
        }
        assert!(claims <= 1, "{claims} claims of {event:?}");
        assert!(
            (claims..=claims + aged).contains(&effects),
            "{effects} effects of {event:?} with {claims} claims and {aged} chances to prune one: \
             {deliveries:?}"
        );
        let duplicates = deliveries
            .iter()
            .any(|d| matches!(d.answer, Answer::Duplicate));
        assert!(
            !duplicates || effects > 0,
            "a delivery of {event:?} was a duplicate, and none was processed: {deliveries:?}"
        );
        self.effects += effects;
        self.claims += claims;
    }
}
