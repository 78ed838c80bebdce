//! Wrongs done on purpose, which the judge must find.

use std::sync::atomic::{AtomicU64, Ordering};

use clap::ValueEnum;

/// What is done wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sabotage {
    /// `apply` writes its effect twice.
    DoubleEffect,
    /// The effect of a delivery that failed is written on another connection.
    OutsideEffect,
    /// `apply` writes nothing.
    MissingEffect,
    /// The claim of a processed event is deleted.
    ForgottenClaim,
    /// The answer is `duplicate`, though `apply` failed and was rolled back.
    FalseDuplicate,
    /// All of them.
    All,
}

impl Sabotage {
    /// As the command line has it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::DoubleEffect => "double-effect",
            Self::OutsideEffect => "outside-effect",
            Self::MissingEffect => "missing-effect",
            Self::ForgottenClaim => "forgotten-claim",
            Self::FalseDuplicate => "false-duplicate",
            Self::All => "all",
        }
    }
}

/// Which wrong is due. Each comes at every 100th opportunity from the 20th on.
#[derive(Debug)]
pub(crate) struct Saboteur {
    chosen: Option<Sabotage>,
    opportunities: [AtomicU64; 5],
    done: AtomicU64,
}

impl Saboteur {
    pub(crate) fn new(chosen: Option<Sabotage>) -> Self {
        Self {
            chosen,
            opportunities: Default::default(),
            done: AtomicU64::new(0),
        }
    }

    /// Whether to do this wrong at this opportunity.
    pub(crate) fn is_due(&self, wrong: Sabotage) -> bool {
        let chosen = self.chosen == Some(wrong) || self.chosen == Some(Sabotage::All);
        let Some(opportunities) = self.opportunities.get(wrong as usize).filter(|_| chosen) else {
            return false;
        };
        let due = opportunities.fetch_add(1, Ordering::Relaxed) % 100 == 19;
        self.done.fetch_add(u64::from(due), Ordering::Relaxed);
        due
    }

    /// How many wrongs were done, if any were asked for.
    pub(crate) fn done(&self) -> Option<u64> {
        self.chosen.map(|_| self.done.load(Ordering::Relaxed))
    }
}
