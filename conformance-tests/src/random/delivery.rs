//! One delivery of a script.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use onceonly::{
    Claim, ClaimStore, Event, HandleError, Handler, Outcome, StoreError, StoreErrorKind,
};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::script::{Fate, Wait, Way};
use crate::drops::{self, Polled};
use crate::world::{PATIENT, World};
use crate::{Harness, HarnessError};

/// How far a delivery came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    Claiming,
    Applying,
    Committing,
}

/// What a delivery came to.
#[derive(Debug)]
pub(super) enum Answer {
    Processed,
    Duplicate,
    InFlight,
    /// In flight after so long, and it would have waited much longer.
    InFlightTooSoon(Duration),
    /// `apply` failed as planned, and it was rolled back.
    Failed,
    Panicked,
    Dropped(Phase),
    Error(StoreError),
}

impl Wait {
    pub(super) const fn duration(self) -> Duration {
        match self {
            Self::Zero => Duration::ZERO,
            Self::Short => Duration::from_millis(80),
            Self::Patient => PATIENT,
        }
    }
}

/// What a delivery and the one who plays the script both see of it.
#[derive(Clone)]
pub(super) struct Control {
    phase: Arc<AtomicU8>,
    /// `apply` goes on when it is closed.
    gate: Arc<Semaphore>,
}

impl Control {
    pub(super) fn new() -> Self {
        Self {
            phase: Arc::default(),
            gate: Arc::new(Semaphore::new(0)),
        }
    }

    pub(super) fn phase(&self) -> Phase {
        match self.phase.load(Ordering::SeqCst) {
            0 => Phase::Claiming,
            1 => Phase::Applying,
            _ => Phase::Committing,
        }
    }

    fn enter(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::SeqCst);
    }

    pub(super) fn go_on(&self) {
        self.gate.close();
    }

    async fn held(&self) {
        let closed = self.gate.acquire().await;
        debug_assert!(closed.is_err(), "the gate has no permits");
    }
}

pub(super) struct Delivery<H: Harness> {
    pub(super) world: World<H>,
    pub(super) store: Arc<H::Store>,
    pub(super) handler: Handler<Arc<H::Store>>,
    pub(super) event: Event,
    /// The account of this delivery alone.
    pub(super) account: String,
    pub(super) way: Way,
    pub(super) wait: Wait,
    pub(super) fate: Fate,
    pub(super) control: Control,
}

impl<H: Harness> Delivery<H> {
    pub(super) async fn run(self) -> Answer {
        let started = Instant::now();
        let answer = match self.fate {
            Fate::DroppedAfter(polls) => match drops::after(polls, self.deliver()).await {
                Polled::Ready(answer) => answer,
                Polled::Dropped => return Answer::Dropped(self.control.phase()),
            },
            _ => self.deliver().await,
        };
        match answer {
            Ok(Answer::Processed) => {
                // True the moment it is said. In a task, since a look from outside is never dropped.
                let (world, event) = (self.world.clone(), self.event.clone());
                let account = self.account.clone();
                let look = async move { world.committed(&event, &account).await };
                match tokio::spawn(look).await {
                    Ok((_, 1)) => Answer::Processed,
                    seen => {
                        panic!("processed, and then there was, of claims and effects: {seen:?}")
                    }
                }
            }
            Ok(answer) => answer,
            Err(error) if error.kind() == StoreErrorKind::InFlight => match started.elapsed() {
                elapsed if self.wait == Wait::Patient && elapsed < PATIENT / 2 => {
                    Answer::InFlightTooSoon(elapsed)
                }
                _ => Answer::InFlight,
            },
            Err(error) => Answer::Error(error),
        }
    }

    async fn deliver(&self) -> Result<Answer, StoreError> {
        match self.way {
            Way::Store | Way::OtherStore => self.bare().await,
            Way::Handle => self.handle().await,
            Way::Guard => self.guard().await,
        }
    }

    async fn bare(&self) -> Result<Answer, StoreError> {
        let mut tx = match self.store.claim(&self.event, self.wait.duration()).await? {
            Claim::Fresh(tx) => tx,
            Claim::Duplicate(_) => return Ok(Answer::Duplicate),
        };
        if self.apply(&mut tx).await.is_err() {
            self.store.rollback(tx).await?;
            return Ok(Answer::Failed);
        }
        self.commit(self.store.commit(tx)).await
    }

    async fn guard(&self) -> Result<Answer, StoreError> {
        let handler = self.handler.clone().with_wait(self.wait.duration());
        let mut guard = match handler.begin(&self.event).await? {
            Claim::Fresh(guard) => guard,
            Claim::Duplicate(_) => return Ok(Answer::Duplicate),
        };
        if self.apply(&mut guard).await.is_err() {
            guard.rollback().await?;
            return Ok(Answer::Failed);
        }
        self.commit(guard.commit()).await
    }

    async fn handle(&self) -> Result<Answer, StoreError> {
        let handler = self.handler.clone().with_wait(self.wait.duration());
        match handler
            .handle(&self.event, async |tx| self.apply(tx).await)
            .await
        {
            Ok(Outcome::Processed(())) => Ok(Answer::Processed),
            Ok(Outcome::Duplicate(_)) => Ok(Answer::Duplicate),
            Err(HandleError::Store(error)) => Err(error),
            Err(_) => Ok(Answer::Failed),
        }
    }

    async fn apply(&self, tx: &mut <H::Store as ClaimStore>::Tx) -> Result<(), HarnessError> {
        self.control.enter(Phase::Applying);
        self.world.credit(tx, &self.account).await;
        self.control.held().await;
        match self.fate {
            Fate::Fails => Err("planted".into()),
            // Not `panic!`: its message would fill the log of a test that passes.
            Fate::Panics => resume_unwind(Box::new("planted")),
            Fate::Commits | Fate::DroppedAfter(_) | Fate::CommitDroppedAfter(_) => {
                self.control.enter(Phase::Committing);
                Ok(())
            }
        }
    }

    async fn commit(
        &self,
        commit: impl Future<Output = Result<(), StoreError>>,
    ) -> Result<Answer, StoreError> {
        let committed = match self.fate {
            Fate::CommitDroppedAfter(polls) => match drops::after(polls, commit).await {
                Polled::Ready(committed) => committed,
                Polled::Dropped => return Ok(Answer::Dropped(Phase::Committing)),
            },
            _ => commit.await,
        };
        committed?;
        Ok(Answer::Processed)
    }
}
