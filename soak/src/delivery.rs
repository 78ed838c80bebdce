//! One delivery: what is planted in it, and what was answered.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use onceonly::{ClaimFate, StoreErrorKind};

use crate::Failure;

/// A delivery as the schedule has it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Delivery {
    pub(crate) event: u32,
    /// Which of the handlers gets it.
    pub(crate) handler: usize,
    pub(crate) wait: Duration,
    pub(crate) plan: Plan,
}

/// What is planted in a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plan {
    Plain,
    /// `apply` returns an error after its effect.
    Error,
    /// `apply` panics after its effect.
    Panic,
    /// The delivery's future is dropped.
    Drop(Cut),
    /// `apply` drops a statement that takes this long, and returns an error.
    Timeout(Duration),
    /// `apply` drops a statement that takes this long, and goes on as if nothing had been.
    HiddenTimeout(Duration),
}

/// Where a future is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) phase: Phase,
    /// At this pending poll of the phase, from 1.
    pub(crate) poll: u32,
    /// And this much later; zero: at that very poll.
    pub(crate) later: Duration,
}

/// How far a delivery came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Claim,
    Apply,
    Commit,
}

impl Phase {
    pub(crate) const ALL: [Self; 3] = [Self::Claim, Self::Apply, Self::Commit];
}

impl Plan {
    pub(crate) const fn kind(self) -> PlanKind {
        match self {
            Self::Plain => PlanKind::Plain,
            Self::Error => PlanKind::Error,
            Self::Panic => PlanKind::Panic,
            Self::Drop(_) => PlanKind::Drop,
            Self::Timeout(_) => PlanKind::Timeout,
            Self::HiddenTimeout(_) => PlanKind::HiddenTimeout,
        }
    }
}

macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($variant:ident = $word:literal,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) enum $name { $($variant,)* }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$variant => $word,)* })
            }
        }

        impl FromStr for $name {
            type Err = Failure;

            fn from_str(word: &str) -> Result<Self, Failure> {
                match word {
                    $($word => Ok(Self::$variant),)*
                    _ => Err(format!("{word:?} is not a {}", stringify!($name)).into()),
                }
            }
        }
    };
}

words! {
    /// The journal's word for what was planted.
    PlanKind {
        Plain = "plain",
        Error = "error",
        Panic = "panic",
        Drop = "drop",
        Timeout = "timeout",
        HiddenTimeout = "hidden-timeout",
        Redelivery = "redelivery",
    }
}

words! {
    /// The journal's word for what came of a delivery.
    Answer {
        Processed = "processed",
        Duplicate = "duplicate",
        PlantedError = "planted-error",
        OwnTimeout = "own-timeout",
        Panicked = "panicked",
        DroppedInClaim = "dropped-in-claim",
        DroppedInApply = "dropped-in-apply",
        DroppedInCommit = "dropped-in-commit",
        InFlight = "in-flight",
        CommitUnknown = "commit-unknown",
        EndedDurable = "ended-durable",
        EndedAbsent = "ended-absent",
        EndedUnknown = "ended-unknown",
        Unavailable = "unavailable",
        Conflict = "conflict",
        Doomed = "transaction-doomed",
        CommitRefused = "commit-refused",
        ApplyTimedOut = "apply-timed-out",
        OtherStoreError = "other-store-error",
        StatementFailed = "statement-failed",
        UnplannedPanic = "unplanned-panic",
        Hung = "hung",
    }
}

impl Answer {
    pub(crate) const fn dropped(phase: Phase) -> Self {
        match phase {
            Phase::Claim => Self::DroppedInClaim,
            Phase::Apply => Self::DroppedInApply,
            Phase::Commit => Self::DroppedInCommit,
        }
    }

    pub(crate) const fn store_error(kind: StoreErrorKind) -> Self {
        match kind {
            StoreErrorKind::InFlight => Self::InFlight,
            StoreErrorKind::CommitUnknown => Self::CommitUnknown,
            StoreErrorKind::TransactionEnded {
                claim: ClaimFate::Durable,
            } => Self::EndedDurable,
            StoreErrorKind::TransactionEnded {
                claim: ClaimFate::Absent,
            } => Self::EndedAbsent,
            StoreErrorKind::TransactionEnded { .. } => Self::EndedUnknown,
            StoreErrorKind::Unavailable => Self::Unavailable,
            StoreErrorKind::Conflict => Self::Conflict,
            StoreErrorKind::TransactionDoomed => Self::Doomed,
            StoreErrorKind::CommitRefused => Self::CommitRefused,
            StoreErrorKind::ApplyTimedOut => Self::ApplyTimedOut,
            _ => Self::OtherStoreError,
        }
    }

    /// Whether a webhook receiver would answer 200.
    pub(crate) const fn is_200(self) -> bool {
        matches!(self, Self::Processed | Self::Duplicate)
    }

    pub(crate) const fn is_drop(self) -> bool {
        matches!(
            self,
            Self::DroppedInClaim | Self::DroppedInApply | Self::DroppedInCommit
        )
    }

    /// Whether its effect may be committed. After every other answer it must not be.
    pub(crate) const fn may_have_committed(self) -> bool {
        matches!(
            self,
            Self::Processed
                | Self::DroppedInCommit
                | Self::CommitUnknown
                | Self::EndedDurable
                | Self::EndedUnknown
                | Self::Hung
        )
    }

    /// Whether a session that was killed under a delivery explains it.
    pub(crate) const fn is_of_killed_session(self) -> bool {
        matches!(
            self,
            Self::Unavailable | Self::CommitUnknown | Self::EndedAbsent | Self::StatementFailed
        )
    }

    /// Whether a run without trouble may give it to a delivery with this plan.
    pub(crate) const fn is_expected(self, plan: PlanKind) -> bool {
        match self {
            Self::Processed | Self::Duplicate | Self::InFlight => true,
            Self::PlantedError => matches!(plan, PlanKind::Error),
            Self::OwnTimeout => matches!(plan, PlanKind::Timeout),
            Self::Panicked => matches!(plan, PlanKind::Panic),
            Self::DroppedInClaim | Self::DroppedInApply | Self::DroppedInCommit => {
                matches!(plan, PlanKind::Drop)
            }
            // MySQL's answers went out of step; SQLite lost the connection to the statement.
            Self::CommitUnknown | Self::EndedAbsent | Self::EndedUnknown => {
                matches!(plan, PlanKind::HiddenTimeout)
            }
            _ => false,
        }
    }
}
