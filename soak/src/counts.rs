//! Counting answers, and the shares of planted failures that a run must have.

use std::collections::BTreeMap;
use std::fmt;

use crate::Failure;
use crate::delivery::{Answer, PlanKind};

/// How many deliveries of each plan came to each answer.
#[derive(Debug, Default, Clone)]
pub(crate) struct Counts(BTreeMap<(Answer, PlanKind), u64>);

impl Counts {
    pub(crate) fn add(&mut self, plan: PlanKind, answer: Answer) {
        *self.0.entry((answer, plan)).or_default() += 1;
    }

    fn sum(&self, wanted: impl Fn(Answer, PlanKind) -> bool) -> u64 {
        let matching = self
            .0
            .iter()
            .filter(|((answer, plan), _)| wanted(*answer, *plan));
        matching.map(|(_, count)| count).sum()
    }

    /// Deliveries of the schedule, without the redeliveries after it.
    pub(crate) fn scheduled(&self) -> u64 {
        self.sum(|_, plan| plan != PlanKind::Redelivery)
    }

    pub(crate) fn of(&self, wanted: Answer) -> u64 {
        self.sum(|answer, _| answer == wanted)
    }

    pub(crate) fn errors(&self) -> u64 {
        self.of(Answer::PlantedError)
    }

    pub(crate) fn panics(&self) -> u64 {
        self.of(Answer::Panicked)
    }

    pub(crate) fn drops(&self) -> u64 {
        self.sum(|answer, _| answer.is_drop())
    }

    /// One line for a run that goes on.
    pub(crate) fn progress(&self) -> String {
        format!(
            "{} delivered, {} processed, {} duplicates, {} in flight, {} errors, {} panics, {} drops",
            self.sum(|_, _| true),
            self.of(Answer::Processed),
            self.of(Answer::Duplicate),
            self.of(Answer::InFlight),
            self.errors(),
            self.panics(),
            self.drops()
        )
    }

    /// Fails unless this many were delivered and at least 5 % each ended by a planted error, by a
    /// planted panic and by a drop.
    pub(crate) fn require(&self, deliveries: u32) -> Result<(), Failure> {
        let delivered = self.scheduled();
        if delivered < u64::from(deliveries) {
            return Err(format!("{delivered} deliveries of {deliveries} were made").into());
        }
        for (what, count) in [
            ("errors", self.errors()),
            ("panics", self.panics()),
            ("drops", self.drops()),
        ] {
            if count * 20 < delivered {
                return Err(
                    format!("{count} {what} in {delivered} deliveries are below 5 %").into(),
                );
            }
        }
        Ok(())
    }

    /// Every answer and plan that came, and how often.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Answer, PlanKind, u64)> {
        self.0
            .iter()
            .map(|((answer, plan), count)| (*answer, *plan, *count))
    }
}

/// The table of answers: each with the plans that it came from.
impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut answers: Vec<Answer> = self.0.keys().map(|(answer, _)| *answer).collect();
        answers.dedup();
        for answer in answers {
            write!(f, "  {:<18} {:>7}  (", answer.to_string(), self.of(answer))?;
            let plans = self.0.iter().filter(|((of, _), _)| *of == answer);
            for (position, ((_, plan), count)) in plans.enumerate() {
                let comma = if position == 0 { "" } else { ", " };
                write!(f, "{comma}{plan} {count}")?;
            }
            writeln!(f, ")")?;
        }
        let scheduled = self.scheduled().max(1) as f64 / 100.0;
        writeln!(
            f,
            "  shares: errors {:.1} %, panics {:.1} %, drops {:.1} %",
            self.errors() as f64 / scheduled,
            self.panics() as f64 / scheduled,
            self.drops() as f64 / scheduled
        )
    }
}
