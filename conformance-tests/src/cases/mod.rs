//! The cases, one file per rule.

mod r00_random;
mod r01_atomic;
mod r02_duplicate_waits;
mod r03_rollback_releases;
mod r04_honest_answers;
mod r05_drop_safe;
mod r05_every_poll;
mod r06_bounded_wait;
mod r07_exact_keys;
mod r08_apply_error;
mod r09_apply_panic;
mod r10_swallowed_error;
mod r11_escaped_transaction;
mod r12_unknown_commit;
mod r13_conflicts;
mod r14_prune;
mod r14_races;
mod r15_durable;
mod r16_migrate;
mod r17_storm;
mod r18_savepoints;
mod records;

use std::time::Duration;

use onceonly::{ClaimRecords, ClaimStore};

use crate::Harness;
use crate::runner::{Case, Need};

macro_rules! need {
    ($name:ident) => {
        Need {
            name: stringify!($name),
            has: |capabilities| capabilities.$name,
        }
    };
}

macro_rules! registry {
    (
        $(#[$doc:meta])* fn $all:ident<H: $bound:path $(, $store:path)?>() for $each:ident;
        $($rule:ident: $($case:ident [$($need:ident)*] $seconds:literal)*;)*
    ) => {
        $(#[$doc])*
        pub(crate) fn $all<H: $bound>() -> Vec<Case>
        where
            H::Store: ClaimStore $(+ $store)?,
        {
            vec![$($(
                Case {
                    name: stringify!($case),
                    needs: &[$(need!($need)),*],
                    run: || Box::pin($rule::$case::<H>()),
                    deadline: Duration::from_secs($seconds),
                },
            )*)*]
        }

        #[doc(hidden)]
        #[macro_export]
        macro_rules! $each {
            ($callback:path, $harness:ty) => {
                $callback! { $harness; $($($case)*)* }
            };
        }
    };
}

registry! {
    /// Every case for a backend, in the order of the rules.
    fn all<H: Harness>() for for_each_case;
    r00_random:
        r0_random_interleavings [] 86400;
    r01_atomic:
        r1_claim_and_effects_are_committed_together [] 60
        r1_nothing_is_there_after_a_rollback [] 60
        r1_nothing_is_seen_before_the_commit [] 60
        r1_many_effects_are_committed_together [] 60
        r1_lost_connection_leaves_neither_claim_nor_effects [network] 60;
    r02_duplicate_waits:
        r2_second_delivery_is_duplicate [] 60
        r2_racing_claim_waits_and_is_duplicate [single_primary] 60
        r2_racing_claim_of_another_store_waits_and_is_duplicate [second_store single_primary] 60
        r2_thirty_two_racing_claims_are_duplicates [second_store single_primary] 60
        r2_racing_deliveries_through_one_handler_run_apply_once [] 60
        r2_delivery_of_another_handler_waits_and_is_duplicate [second_store single_primary] 60;
    r03_rollback_releases:
        r3_two_racers_one_processes_after_a_rollback [] 60
        r3_three_racers_one_processes_after_a_rollback [] 60
        r3_eight_racers_one_processes_after_a_rollback [] 60
        r3_thirty_two_racers_one_processes_after_a_rollback [] 120
        r3_racers_of_two_stores_one_processes_after_a_rollback [second_store] 120
        r3_racers_in_stores_of_their_own_one_processes_after_a_rollback [second_store] 120
        r3_racers_that_fail_in_turn_let_the_next_process [single_primary] 60
        r3_handlers_of_two_stores_process_once_after_failures [second_store] 120;
    r04_honest_answers:
        r4_an_open_claim_is_never_a_duplicate [] 60
        r4_processed_means_committed [] 60
        r4_other_keys_are_claimed_beside_an_open_claim [concurrent_keys] 60
        r4_lost_connection_is_never_a_duplicate [network single_primary] 60;
    r05_drop_safe:
        r5_dropped_transaction_frees_the_key [] 60
        r5_dropped_transaction_releases_a_waiter [] 60
        r5_dropped_transaction_releases_eight_waiters [] 60
        r5_claim_dropped_at_every_poll_claims_nothing [] 120
        r5_claim_of_a_held_key_dropped_at_every_poll_claims_nothing [second_store single_primary] 120
        r5_claim_dropped_while_waiting_leaves_the_queue [] 60
        r5_commit_dropped_at_every_poll_is_all_or_nothing [] 120
        r5_rollback_dropped_at_every_poll_rolls_back [] 120
        r5_handle_dropped_at_every_poll_is_all_or_nothing [] 120
        r5_prune_dropped_at_every_poll_harms_nothing [] 120
        r5_drops_do_not_exhaust_a_pool_of_one [] 120
        r5_statement_in_flight_is_given_up_when_the_transaction_is_dropped [slow_statement] 60
        r5_statement_dropped_inside_apply_never_fakes_an_answer [slow_statement] 60
        r5_delivery_dropped_in_a_statement_frees_the_key [slow_statement] 60
        r5_dropping_outside_a_runtime_does_not_panic [] 60;
    r06_bounded_wait:
        r6_wait_elapsed_is_in_flight [single_primary] 60
        r6_zero_wait_tries_once [single_primary] 60
        r6_zero_wait_claims_a_free_key [] 60
        r6_maximal_wait_does_not_overflow [] 60
        r6_chain_of_holders_does_not_extend_the_wait [single_primary] 60
        r6_wait_counts_the_queue_of_a_handler [second_store single_primary] 60
        r6_wait_in_the_queue_of_a_handler_ends [] 60
        r6_timed_out_claim_leaves_a_usable_connection [single_primary] 60
        r6_claim_without_a_free_connection_ends [] 60;
    r07_exact_keys:
        r7_keys_that_differ_in_any_byte_are_distinct [] 120
        r7_random_keys_are_distinct [] 120
        r7_the_same_id_of_two_sources_is_two_events [] 60
        r7_two_sources_do_not_share_a_handlers_queue [] 60
        r7_longest_names_are_kept_whole [] 60
        r7_hostile_names_are_only_names [] 60;
    r08_apply_error:
        r8_apply_error_comes_back_and_the_next_delivery_processes [] 60
        r8_failed_delivery_lets_a_waiter_process [] 60
        r8_failed_delivery_lets_one_that_queues_in_its_handler_process [] 60
        r8_apply_that_takes_too_long_is_rolled_back [] 60;
    r09_apply_panic:
        r9_apply_panic_goes_on_and_the_next_delivery_processes [] 60
        r9_panic_with_an_open_transaction_releases_a_waiter [single_primary] 60;
    r10_swallowed_error:
        r10_doomed_transaction_is_not_committed [dooming] 60
        r10_doomed_transaction_is_not_processed [dooming] 60
        r10_doomed_delivery_settles_nobody_who_waits [dooming] 60;
    r11_escaped_transaction:
        r11_every_escape_is_seen_at_commit [escapes] 180
        r11_every_escape_is_an_error_of_handle [escapes] 180
        r11_escape_and_then_a_dropped_statement_is_not_processed [escapes slow_statement] 60
        r11_rollback_after_an_escape_leaves_nothing_open [escapes] 180
        r11_drop_after_an_escape_leaves_nothing_open [escapes] 180;
    r12_unknown_commit:
        r12_commit_cut_before_it_arrived_is_unknown [network] 60
        r12_commit_cut_after_it_arrived_is_unknown [network] 60
        r12_delivery_cut_before_its_commit_arrived_is_unknown [network] 60
        r12_delivery_cut_after_its_commit_arrived_is_unknown [network] 60
        r12_delivery_without_an_answer_to_its_commit_is_unknown [network] 60;
    r13_conflicts:
        r13_conflict_in_apply_is_told [conflicts] 60
        r13_conflict_in_apply_is_run_again [conflicts] 60
        r13_conflict_at_commit_leaves_nothing [commit_conflicts] 60
        r13_conflict_at_commit_is_run_again [commit_conflicts] 60
        r13_conflict_at_commit_settles_nobody_who_queues [commit_conflicts] 60
        r13_refused_commit_is_definite [deferred_constraints] 60;
    r14_prune:
        r14_only_old_claims_are_pruned [] 60
        r14_at_most_the_limit_is_pruned [] 60
        r14_extreme_ages_and_limits_are_valid [] 60
        r14_open_claims_are_neither_pruned_nor_waited_for [concurrent_keys] 60
        r14_pruned_key_is_claimed_again [] 60
        r14_session_time_zones_change_nothing [network] 60
        r14_only_the_databases_clock_counts [clock] 60;
    r14_races:
        r14_pruning_beside_claims_never_fails [concurrent_keys second_store] 120
        r14_two_pruners_prune_each_claim_once [second_store] 60
        r14_key_claimed_again_beside_pruners_stays [] 120
        r14_prune_behind_an_open_claim_tells_no_lie [] 60;
    r15_durable:
        r15_processed_events_outlive_a_kill [restart] 180
        r15_kill_between_commits_splits_no_event [restart] 180
        r15_every_unfit_setting_is_found [checks] 180;
    r16_migrate:
        r16_migrating_twice_changes_nothing [migrations] 60
        r16_ten_instances_migrate_at_once [migrations] 120
        r16_changed_migration_is_refused [migrations] 60
        r16_newer_compatible_schema_is_accepted [migrations] 60
        r16_incompatible_schema_is_refused [migrations] 60
        r16_missing_schema_names_the_fix [migrations] 60;
    r17_storm:
        r17_storm_through_a_handler_holds_one_connection [connections] 120
        r17_storm_on_two_processes_holds_two_connections [connections second_store single_primary] 120
        r17_storm_leaves_other_keys_their_connections [concurrent_keys] 120;
    r18_savepoints:
        r18_savepoint_rolls_back_without_harming_the_claim [savepoints] 60;
}

registry! {
    /// Every case for a backend whose store is also `ClaimRecords`.
    fn all_records<H: Harness, ClaimRecords>() for for_each_records_case;
    records:
        records_know_committed_claims_only [] 60
        records_look_without_waiting [] 60
        records_forget_a_claim_and_the_next_delivery_processes [] 60
        records_forget_waits_for_an_open_claim [single_primary] 60;
}
