//! What is right and what is wrong, from the journal and the ledger alone.

use std::fmt;

use crate::database::Entry;
use crate::events::Event;
use crate::journal::{Answer, Line};
use crate::provider::COPIES;

/// What a run came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    processed: usize,
    duplicates: usize,
    pub(crate) retried: usize,
    /// What is wrong, and with which event.
    pub(crate) wrong: Vec<String>,
}

/// Every event is credited once and as it says; one answer to it was processed (none, if answers were
/// lost); each of its deliveries ended with 200.
pub(crate) fn judge(events: &[Event], journal: &[Line], ledger: &[Entry]) -> Verdict {
    let answers = |wanted| journal.iter().filter(|line| line.answer == wanted).count();
    let mut verdict = Verdict {
        processed: answers(Answer::Processed),
        duplicates: answers(Answer::Duplicate),
        retried: journal.iter().filter(|line| !line.answer.is_200()).count(),
        wrong: Vec::new(),
    };
    for event in events {
        if let Err(reason) = judge_event(event, journal, ledger) {
            let name = (event.sender.source(), &event.id);
            verdict.wrong.push(format!("{name:?}: {reason}"));
        }
    }
    let strangers = ledger
        .iter()
        .filter(|entry| !events.iter().any(|event| entry.is_of(event)));
    for entry in strangers {
        verdict
            .wrong
            .push(format!("credited and never delivered: {entry:?}"));
    }
    verdict
}

fn judge_event(event: &Event, journal: &[Line], ledger: &[Entry]) -> Result<(), String> {
    let entries: Vec<_> = ledger.iter().filter(|entry| entry.is_of(event)).collect();
    match entries.as_slice() {
        [] => return Err("not in the ledger".to_owned()),
        [entry] if entry.amount == event.amount => {}
        [entry] => return Err(format!("credited {} for {}", entry.amount, event.amount)),
        more => return Err(format!("{} lines in the ledger", more.len())),
    }
    let name = (event.sender.source(), event.id.as_str());
    let lines: Vec<_> = journal
        .iter()
        .filter(|line| (line.event.0.as_str(), line.event.1.as_str()) == name)
        .collect();
    let count = |wanted| lines.iter().filter(|line| line.answer == wanted).count();
    let processed = count(Answer::Processed);
    if processed > 1 || (processed == 0 && count(Answer::Lost) == 0) {
        return Err(format!("answered with processed {processed} times"));
    }
    if count(Answer::Unclear) > 0 {
        return Err("answered with 200 and neither processed nor duplicate".to_owned());
    }
    for delivery in 0..COPIES {
        let of_it = |line: &&&Line| line.delivery == delivery;
        if !lines.iter().filter(of_it).any(|line| line.answer.is_200()) {
            return Err(format!("delivery {delivery} never got 200"));
        }
    }
    Ok(())
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "processed {}, duplicates {}, retried {}, wrong {}",
            self.processed,
            self.duplicates,
            self.retried,
            self.wrong.len()
        )?;
        self.wrong
            .iter()
            .try_for_each(|reason| write!(f, "\n  {reason}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Sender;

    fn event(id: &str) -> Event {
        Event {
            id: id.to_owned(),
            sender: Sender::Invoices,
            body: Vec::new(),
            amount: 10,
        }
    }

    fn entry(id: &str, amount: i64) -> Entry {
        Entry {
            source: "invoices".to_owned(),
            event_id: id.to_owned(),
            amount,
        }
    }

    fn journal(answers: [&[Answer]; COPIES]) -> Vec<Line> {
        let deliveries = answers.iter().enumerate();
        let lines = deliveries.flat_map(|(delivery, answers)| {
            answers.iter().map(move |&answer| Line {
                event: ("invoices".to_owned(), "evt_1".to_owned()),
                delivery,
                answer,
            })
        });
        lines.collect()
    }

    const RIGHT: [&[Answer]; COPIES] = [
        &[Answer::Refused(500), Answer::Duplicate],
        &[Answer::Processed],
        &[Answer::Refused(503), Answer::Duplicate],
    ];

    fn reason(answers: [&[Answer]; COPIES], ledger: &[Entry]) -> String {
        let verdict = judge(&[event("evt_1")], &journal(answers), ledger);
        assert_eq!(verdict.wrong.len(), 1, "{verdict}");
        verdict.wrong[0].clone()
    }

    #[test]
    fn one_credit_one_processed_and_duplicates_are_right() {
        let verdict = judge(&[event("evt_1")], &journal(RIGHT), &[entry("evt_1", 10)]);
        assert_eq!(
            verdict.to_string(),
            "processed 1, duplicates 2, retried 2, wrong 0"
        );
    }

    #[test]
    fn lost_answer_may_have_been_the_processed_one() {
        let lost: [&[Answer]; COPIES] = [
            &[Answer::Lost, Answer::Duplicate],
            &[Answer::Duplicate],
            &[Answer::Duplicate],
        ];
        let verdict = judge(&[event("evt_1")], &journal(lost), &[entry("evt_1", 10)]);
        assert!(verdict.wrong.is_empty(), "{verdict}");
    }

    #[test]
    fn wrong_ledger_is_found() {
        assert!(reason(RIGHT, &[]).contains("not in the ledger"));
        let twice = [entry("evt_1", 10), entry("evt_1", 10)];
        assert!(reason(RIGHT, &twice).contains("2 lines"));
        assert!(reason(RIGHT, &[entry("evt_1", 11)]).contains("credited 11 for 10"));
        let stranger = [entry("evt_1", 10), entry("evt_2", 10)];
        assert!(reason(RIGHT, &stranger).contains("never delivered"));
    }

    #[test]
    fn wrong_answers_are_found() {
        let ledger = [entry("evt_1", 10)];
        let twice: [&[Answer]; COPIES] = [
            &[Answer::Processed],
            &[Answer::Processed],
            &[Answer::Duplicate],
        ];
        assert!(reason(twice, &ledger).contains("processed 2 times"));
        let never: [&[Answer]; COPIES] = [&[Answer::Duplicate]; COPIES];
        assert!(reason(never, &ledger).contains("processed 0 times"));
        let given_up: [&[Answer]; COPIES] = [
            &[Answer::Processed],
            &[Answer::Refused(503)],
            &[Answer::Duplicate],
        ];
        assert!(reason(given_up, &ledger).contains("never got 200"));
        let unclear: [&[Answer]; COPIES] = [
            &[Answer::Processed],
            &[Answer::Unclear],
            &[Answer::Duplicate],
        ];
        assert!(reason(unclear, &ledger).contains("neither"));
    }
}
