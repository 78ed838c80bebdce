//! What is right and what is wrong, from the journal and the ledger alone.

use std::fmt;

use crate::database::Credited;
use crate::journal::{Answer, Journal};
use crate::provider::Event;

/// What a run came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    processed: usize,
    duplicates: usize,
    retried: usize,
    /// Events that are wrong, each with its reason.
    wrong: Vec<String>,
}

impl Verdict {
    pub(crate) fn wrong(&self) -> usize {
        self.wrong.len()
    }
}

/// Every event is credited once, one of its deliveries was answered with processed, the others with
/// duplicate, and every one ended with 200.
pub(crate) fn judge(events: &[Event], journal: &Journal, credited: &Credited) -> Verdict {
    let mut verdict = Verdict::default();
    for event in events {
        let deliveries = journal
            .get(&event.id)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let answers = || deliveries.iter().flatten();
        let count = |wanted| answers().filter(|answer| **answer == wanted).count();
        let (processed, duplicates) = (count(Answer::Processed), count(Answer::Duplicate));
        verdict.processed += processed;
        verdict.duplicates += duplicates;
        verdict.retried += answers()
            .filter(|answer| matches!(answer, Answer::Retry(_)))
            .count();
        let lines = credited.get(&event.id).copied().unwrap_or_default();
        if lines != 1 {
            verdict
                .wrong
                .push(format!("{} has {lines} lines in the ledger", event.id));
        } else if processed != 1 {
            verdict.wrong.push(format!(
                "{} was answered {processed} times with processed",
                event.id
            ));
        } else if deliveries.is_empty() || processed + duplicates != deliveries.len() {
            verdict.wrong.push(format!(
                "{} has deliveries without a 200: {deliveries:?}",
                event.id
            ));
        }
    }
    let known = |id: &String| events.iter().any(|event| event.id == *id);
    for stranger in credited.keys().filter(|id| !known(id)) {
        verdict
            .wrong
            .push(format!("{stranger} was credited and never delivered"));
    }
    verdict
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            processed,
            duplicates,
            retried,
            wrong,
        } = self;
        write!(
            f,
            "processed {processed}, duplicates {duplicates}, retried {retried}, wrong {}",
            wrong.len()
        )?;
        wrong
            .iter()
            .try_for_each(|reason| write!(f, "\n  {reason}"))
    }
}
