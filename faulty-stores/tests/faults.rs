//! Every planted mistake fails the suite, by the names of the rules that it breaks.
#![allow(clippy::expect_used, reason = "a test states what it expects")]

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;
use std::{env, fs};

use onceonly_conformance::{CaseOutcome, report};
use onceonly_faulty_stores::{Fault, FaultyHarness};

/// A case of a store without mistakes takes a small part of this.
const DEADLINE: Duration = Duration::from_secs(10);

/// `fault: case, case, …`, one line per mistake: the cases that catch it, every time.
const MATRIX: &str = include_str!("../matrix.txt");

fn failed<const FAULT: u8>(only: impl Fn(&str) -> bool) -> Vec<&'static str> {
    let results = report::<FaultyHarness<FAULT>>(only, DEADLINE);
    for result in &results {
        println!("{result}");
    }
    let failures = results
        .iter()
        .filter(|r| matches!(r.outcome, CaseOutcome::Failed(_)));
    failures.map(|result| result.name).collect()
}

fn caught<const FAULT: u8>() {
    let fault = Fault::of(FAULT);
    if env::var_os("ONCEONLY_BLESS").is_some() {
        return bless(fault, &failed::<FAULT>(|case| !varies(case)));
    }
    let line = MATRIX
        .lines()
        .find_map(|line| line.strip_prefix(fault.name())?.strip_prefix(": "));
    let expected: Vec<&str> = line
        .expect("the matrix has every mistake")
        .split(", ")
        .collect();
    let seen = failed::<FAULT>(|case| expected.contains(&case));
    assert!(fault.reached() > 0, "the faulty line was never reached");
    assert_eq!(
        seen,
        expected,
        "the cases that catch `{}` are not those of the matrix",
        fault.name()
    );
}

/// `ONCEONLY_BLESS=1 cargo test -p onceonly-faulty-stores` writes the matrix anew: look at the diff.
fn bless(fault: Fault, cases: &[&str]) {
    static LINES: Mutex<BTreeMap<usize, String>> = Mutex::new(BTreeMap::new());
    let mut lines = LINES
        .lock()
        .expect("no other test panics while it holds the lines");
    lines.insert(
        fault as usize,
        format!("{}: {}\n", fault.name(), cases.join(", ")),
    );
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/matrix.txt");
    fs::write(file, lines.values().map(String::as_str).collect::<String>()).expect("writable");
}

/// Whether a case catches by chance, or takes longer than the deadline with some mistakes.
fn varies(case: &str) -> bool {
    ["random", "thirty_two", "storm", "every_poll"]
        .iter()
        .any(|part| case.contains(part))
}

#[test]
fn a_store_without_a_mistake_passes_everything() {
    assert_eq!(failed::<0>(|_| true), [] as [&str; 0]);
}

#[test]
fn the_matrix_has_every_mistake() {
    let named: Vec<&str> = MATRIX
        .lines()
        .filter_map(|line| Some(line.split_once(": ")?.0))
        .collect();
    let faults: Vec<&str> = Fault::ALL.iter().map(|fault| fault.name()).collect();
    assert_eq!(named, faults);
}

macro_rules! each_fault {
    ($($test:ident $fault:ident)*) => {
        $(
            #[test]
            fn $test() {
                caught::<{ Fault::$fault as u8 }>();
            }
        )*
    };
}

each_fault! {
    select_then_insert_is_caught SelectThenInsert
    claim_committed_before_apply_is_caught ClaimCommittedFirst
    effect_on_another_connection_is_caught EffectElsewhere
    no_rollback_on_drop_is_caught NoRollbackOnDrop
    duplicate_while_the_first_is_open_is_caught DuplicateWhileOpen
    no_bounded_wait_is_caught UnboundedWait
    case_folding_key_is_caught CaseFoldingKey
    truncating_key_is_caught TruncatingKey
    trimming_key_is_caught TrimmingKey
    key_without_source_is_caught KeyWithoutSource
    claim_kept_after_a_failed_apply_is_caught ClaimKeptAfterRollback
    deadlock_shown_to_the_caller_is_caught DeadlockShown
    processed_after_a_doomed_transaction_is_caught DoomedCommitted
    statement_dropped_inside_apply_is_caught StaleReply
    escape_not_seen_is_caught EscapeUnseen
    prune_without_limit_is_caught PruneWithoutLimit
    prune_without_age_is_caught PruneWithoutAge
    commit_not_awaited_is_caught CommitNotAwaited
    waiter_answered_from_a_stale_look_is_caught StaleWaiter
    wait_ignored_is_caught WaitIgnored
}
