//! The catalogue of mistakes.

use std::sync::atomic::{AtomicU32, Ordering};

macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $text:literal;)*) => {
        /// One mistake. `None` is the same store without any, and must pass everything.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Fault {
            /// No mistake.
            None = 0,
            $($(#[$doc])* $name = $number,)*
        }

        impl Fault {
            /// Every mistake.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The mistake of this number, for types that carry it as a constant.
            #[must_use]
            pub const fn of(number: u8) -> Self {
                match number {
                    $($number => Self::$name,)*
                    _ => Self::None,
                }
            }

            /// Its name in the matrix.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    Self::None => "none",
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

faults! {
    /// Looks whether the key is known, and inserts without a unique index.
    SelectThenInsert = 1, "select_then_insert";
    /// Commits the claim in a transaction of its own before `apply` runs.
    ClaimCommittedFirst = 2, "claim_committed_before_apply";
    /// Runs effects on another connection, which commits them at once.
    EffectElsewhere = 3, "effect_on_another_connection";
    /// Leaves the transaction open when it is dropped.
    NoRollbackOnDrop = 4, "no_rollback_on_drop";
    /// Answers duplicate while the first claim is still open.
    DuplicateWhileOpen = 5, "duplicate_while_the_first_is_open";
    /// Waits for the holder without a limit.
    UnboundedWait = 6, "no_bounded_wait";
    /// Compares ids without regard to case.
    CaseFoldingKey = 7, "case_folding_key";
    /// Cuts ids to 64 bytes.
    TruncatingKey = 8, "truncating_key";
    /// Trims spaces at the end of ids.
    TrimmingKey = 9, "trimming_key";
    /// Leaves the source out of the key.
    KeyWithoutSource = 10, "key_without_source";
    /// Rolls the effects back and keeps the claim.
    ClaimKeptAfterRollback = 11, "claim_kept_after_a_failed_apply";
    /// Shows a waiter the deadlock that a holder's rollback caused.
    DeadlockShown = 12, "deadlock_shown_to_the_caller";
    /// Says that a doomed transaction was committed.
    DoomedCommitted = 13, "processed_after_a_doomed_transaction";
    /// Takes the late reply of a statement that `apply` dropped for the reply to COMMIT.
    StaleReply = 14, "statement_dropped_inside_apply";
    /// Says that a transaction was committed which `apply` had ended before.
    EscapeUnseen = 15, "escape_not_seen";
    /// Prunes everything that is old at once.
    PruneWithoutLimit = 16, "prune_without_limit";
    /// Prunes whatever the age.
    PruneWithoutAge = 17, "prune_without_age";
    /// Says that it committed and leaves the commit to the background.
    CommitNotAwaited = 18, "commit_not_awaited";
    /// Gives a waiter the claim's answer as it was when the waiter came.
    StaleWaiter = 19, "waiter_answered_from_a_stale_look";
    /// Answers in flight at once, however long the caller would wait.
    WaitIgnored = 20, "wait_ignored";
}

static REACHED: [AtomicU32; 32] = [const { AtomicU32::new(0) }; 32];

impl Fault {
    /// Whether this is the planted mistake; counts that its line was reached.
    pub(crate) fn is(self, other: Self) -> bool {
        let planted = self == other;
        if planted {
            REACHED[other as usize].fetch_add(1, Ordering::Relaxed);
        }
        planted
    }

    /// How often the mistake was made in this process.
    #[must_use]
    pub fn reached(self) -> u32 {
        REACHED[self as usize].load(Ordering::Relaxed)
    }
}
