//! Random interleavings alone, without a forced race, find the mistakes too.

use std::time::Duration;

use onceonly_conformance::{CaseOutcome, report};
use onceonly_faulty_stores::{Fault, FaultyHarness};

fn outcome<const FAULT: u8>() -> CaseOutcome {
    let results = report::<FaultyHarness<FAULT>>(
        |case| case == "r0_random_interleavings",
        Duration::from_secs(30),
    );
    results
        .into_iter()
        .next()
        .map_or(CaseOutcome::Passed, |result| result.outcome)
}

#[test]
fn a_store_without_a_mistake_passes() {
    assert_eq!(outcome::<0>(), CaseOutcome::Passed);
}

macro_rules! each_fault {
    ($($test:ident $fault:ident)*) => {
        $(
            #[test]
            fn $test() {
                let outcome = outcome::<{ Fault::$fault as u8 }>();
                assert!(matches!(outcome, CaseOutcome::Failed(_)), "{outcome:?}");
            }
        )*
    };
}

each_fault! {
    select_then_insert_is_found SelectThenInsert
    claim_committed_before_apply_is_found ClaimCommittedFirst
    effect_on_another_connection_is_found EffectElsewhere
    no_rollback_on_drop_is_found NoRollbackOnDrop
    duplicate_while_the_first_is_open_is_found DuplicateWhileOpen
    no_bounded_wait_is_found UnboundedWait
    claim_kept_after_a_failed_apply_is_found ClaimKeptAfterRollback
    deadlock_shown_to_the_caller_is_found DeadlockShown
    prune_without_age_is_found PruneWithoutAge
    commit_not_awaited_is_found CommitNotAwaited
    waiter_answered_from_a_stale_look_is_found StaleWaiter
    wait_ignored_is_found WaitIgnored
}
