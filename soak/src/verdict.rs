//! Comparing what was answered with what the database holds.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use crate::delivery::Answer;
use crate::evidence::Evidence;
use crate::journal::Line;

/// A way in which claim, effects and answers can disagree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Wrong {
    AppliedTwice,
    Lost,
    EffectWithoutClaim,
    ClaimWithoutEffect,
    ClaimedTwice,
    AnsweredWithoutClaim,
    ProcessedTwice,
    ProcessedElsewhere,
    FailedWithEffect,
    AnsweredTooEarly,
    ProcessedAfterAnswer,
    NeverAnswered,
    NeverDelivered,
}

impl Wrong {
    const ALL: [(Self, &'static str); 13] = [
        (Self::AppliedTwice, "events applied more than once"),
        (Self::Lost, "events answered 200 without an effect"),
        (
            Self::EffectWithoutClaim,
            "events with an effect and no claim",
        ),
        (
            Self::ClaimWithoutEffect,
            "events with a claim and no effect",
        ),
        (Self::ClaimedTwice, "events with more than one claim"),
        (
            Self::AnsweredWithoutClaim,
            "events answered 200 without a claim",
        ),
        (
            Self::ProcessedTwice,
            "events answered processed more than once",
        ),
        (
            Self::ProcessedElsewhere,
            "answers processed whose own effect is missing",
        ),
        (Self::FailedWithEffect, "effects of deliveries that failed"),
        (
            Self::AnsweredTooEarly,
            "answers duplicate before any commit had begun",
        ),
        (
            Self::ProcessedAfterAnswer,
            "answers processed to a delivery begun after a 200",
        ),
        (Self::NeverAnswered, "events without a 200"),
        (Self::NeverDelivered, "events that nobody delivered"),
    ];
}

/// What the judge found.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    events: usize,
    applied_once: usize,
    answered: usize,
    /// Answers duplicate to deliveries that began before the commit that they lost to.
    raced: usize,
    /// Drops in the commit and unknown commits: committed, and not.
    open: (usize, usize),
    wrongs: BTreeMap<Wrong, Vec<u32>>,
}

impl Verdict {
    /// Looks at the events 0 to `events` and at every line and row.
    pub(crate) fn of(events: u32, lines: &[Line], evidence: &Evidence) -> Self {
        let mut verdict = Self::default();
        let mut deliveries: HashMap<u32, Vec<&Line>> = (0..events).map(|e| (e, vec![])).collect();
        for line in lines {
            deliveries.entry(line.event).or_default().push(line);
        }
        for event in evidence.effects.keys().chain(evidence.claims.keys()) {
            deliveries.entry(*event).or_default();
        }
        for (event, lines) in deliveries {
            let effects = evidence.effects.get(&event).map_or(&[][..], Vec::as_slice);
            let claims = evidence.claims.get(&event).copied().unwrap_or_default();
            verdict.event(event, &lines, effects, claims);
        }
        verdict
    }

    /// How many disagreements there are.
    pub(crate) fn wrong(&self) -> usize {
        self.wrongs.values().map(Vec::len).sum()
    }

    fn event(&mut self, event: u32, lines: &[&Line], effects: &[u64], claims: u32) {
        self.events += 1;
        self.applied_once += usize::from(effects.len() == 1);
        let answered = lines.iter().any(|line| line.answer.is_200());
        self.answered += usize::from(answered);
        for (wrong, is_so) in [
            (Wrong::NeverDelivered, lines.is_empty()),
            (Wrong::NeverAnswered, !answered),
            (Wrong::AppliedTwice, effects.len() > 1),
            (Wrong::Lost, answered && effects.is_empty()),
            (
                Wrong::EffectWithoutClaim,
                !effects.is_empty() && claims == 0,
            ),
            (Wrong::ClaimWithoutEffect, effects.is_empty() && claims > 0),
            (Wrong::ClaimedTwice, claims > 1),
            (Wrong::AnsweredWithoutClaim, answered && claims == 0),
        ] {
            self.add(wrong, event, usize::from(is_so));
        }
        let processed = |line: &&&Line| line.answer == Answer::Processed;
        let processed_count = lines.iter().filter(processed).count();
        self.add(
            Wrong::ProcessedTwice,
            event,
            usize::from(processed_count > 1),
        );
        let elsewhere = lines.iter().filter(processed);
        let elsewhere = elsewhere.filter(|line| !effects.contains(&line.delivery));
        self.add(Wrong::ProcessedElsewhere, event, elsewhere.count());
        let failed = effects.iter().filter(|effect| {
            let by = lines.iter().find(|line| line.delivery == **effect);
            !by.is_some_and(|line| line.answer.may_have_committed())
        });
        self.add(Wrong::FailedWithEffect, event, failed.count());
        for line in lines
            .iter()
            .filter(|line| line.answer.may_have_committed() && line.answer != Answer::Processed)
        {
            let committed = usize::from(effects.contains(&line.delivery));
            self.open.0 += committed;
            self.open.1 += 1 - committed;
        }
        self.order(event, lines);
    }

    /// Holds the answers against the order in which deliveries began, committed and ended.
    fn order(&mut self, event: u32, lines: &[&Line]) {
        let first_commit = lines
            .iter()
            .filter(|line| line.answer.may_have_committed())
            .filter_map(|line| line.commit_began)
            .min()
            .unwrap_or(u64::MAX);
        let duplicates = lines.iter().filter(|line| line.answer == Answer::Duplicate);
        self.raced += duplicates
            .clone()
            .filter(|line| line.began < first_commit)
            .count();
        let early = duplicates.filter(|line| line.ended < first_commit).count();
        self.add(Wrong::AnsweredTooEarly, event, early);
        let answered = lines.iter().filter(|line| line.answer.is_200());
        let first_200 = answered.map(|line| line.ended).min().unwrap_or(u64::MAX);
        let again = lines
            .iter()
            .filter(|line| line.answer == Answer::Processed && line.began > first_200);
        self.add(Wrong::ProcessedAfterAnswer, event, again.count());
    }

    fn add(&mut self, wrong: Wrong, event: u32, count: usize) {
        if count > 0 {
            let events = self.wrongs.entry(wrong).or_default();
            events.extend(std::iter::repeat_n(event, count));
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  {:>7}  events", self.events)?;
        writeln!(f, "  {:>7}  events applied exactly once", self.applied_once)?;
        writeln!(f, "  {:>7}  events answered 200", self.answered)?;
        writeln!(
            f,
            "  {:>7}  duplicates that raced with the commit",
            self.raced
        )?;
        let (committed, absent) = self.open;
        writeln!(
            f,
            "  {:>7}  commits dropped or unknown ({committed} took place, {absent} did not)",
            committed + absent
        )?;
        for (wrong, text) in Wrong::ALL {
            let events = self.wrongs.get(&wrong).map_or(&[][..], Vec::as_slice);
            write!(f, "  {:>7}  {text}", events.len())?;
            if !events.is_empty() {
                write!(f, ": {:?}", &events[..events.len().min(5)])?;
            }
            writeln!(f)?;
        }
        writeln!(f, "wrong: {}", self.wrong())
    }
}

#[cfg(test)]
mod tests;
