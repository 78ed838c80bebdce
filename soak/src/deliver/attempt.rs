//! One delivery through a handler, with what is planted in it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::time::Duration;

use futures_util::FutureExt as _;
use onceonly::{Event, EventId, HandleError, Handler, Outcome, Source};
use tokio::task::yield_now;
use tokio::time::timeout;

use super::planted::{ApplyError, PlantedPanic};
use crate::Failure;
use crate::cut::{Progress, cut_short};
use crate::database::{Database, Effect, Tx};
use crate::delivery::{Answer, Delivery, Plan};
use crate::evidence::{SOURCE, event_id};
use crate::journal::Journal;
use crate::sabotage::{Sabotage, Saboteur};

/// Longer than all of a handler's own limits together: nobody may wait as long.
const HUNG: Duration = Duration::from_secs(100);
/// When `apply` drops a statement of its own.
const PATIENCE: Duration = Duration::from_millis(2);

pub(super) struct Attempt<D: Database> {
    pub(super) database: D,
    pub(super) handlers: Vec<Handler<D::Store>>,
    pub(super) saboteur: Saboteur,
    pub(super) journal: Journal,
}

/// What came of a delivery.
pub(super) struct Attempted {
    pub(super) answer: Answer,
    pub(super) commit_began: Option<u64>,
    /// The error in full.
    pub(super) detail: Option<String>,
}

type Handled = Result<Outcome<()>, HandleError<ApplyError>>;

impl<D: Database> Attempt<D> {
    /// Delivers once. Fails only when the run itself can't go on.
    pub(super) async fn make(&self, number: u64, delivery: Delivery) -> Result<Attempted, Failure> {
        let event =
            Event::new(SOURCE, event_id(delivery.event))?.with_type(delivery_type(number))?;
        let effect = Effect {
            event: delivery.event,
            delivery: number,
        };
        let handler = self
            .handlers
            .get(delivery.handler)
            .ok_or("no such handler")?;
        let handler = handler.clone().with_wait(delivery.wait);
        let progress = Progress::default();
        let handling = handler.handle(&event, async |tx| {
            progress.apply_begins();
            self.apply(tx, effect, delivery.plan).await?;
            progress.commit_begins(self.journal.ticket());
            Ok(())
        });
        let cut = match delivery.plan {
            Plan::Drop(cut) => Some(cut),
            _ => None,
        };
        let caught = AssertUnwindSafe(handling).catch_unwind();
        let cut = cut_short(timeout(HUNG, caught), cut, &progress).await;
        let (answer, detail) = match cut {
            Err(phase) => (Answer::dropped(phase), None),
            Ok(Err(_)) => (Answer::Hung, None),
            Ok(Ok(Err(panic))) => of_panic(&*panic),
            Ok(Ok(Ok(handled))) => of_handled(handled),
        };
        let answer = self.sabotage(answer, effect, &event).await?;
        Ok(Attempted {
            answer,
            commit_began: progress.commit_ticket(),
            detail,
        })
    }

    async fn apply(&self, tx: &mut Tx<D>, effect: Effect, plan: Plan) -> Result<(), ApplyError> {
        if !(plan == Plan::Plain && self.saboteur.is_due(Sabotage::MissingEffect)) {
            D::effect(tx, effect).await.map_err(ApplyError::Statement)?;
        }
        match plan {
            Plan::Plain if self.saboteur.is_due(Sabotage::DoubleEffect) => {
                D::effect(tx, effect).await.map_err(ApplyError::Statement)
            }
            Plan::Plain => Ok(()),
            Plan::Drop(_) => {
                yield_now().await;
                Ok(())
            }
            Plan::Error => Err(ApplyError::Planted),
            Plan::Panic => {
                // Some while a statement is under way.
                if effect.delivery.is_multiple_of(4) {
                    let _sent = D::slow(tx, PATIENCE).now_or_never();
                }
                resume_unwind(Box::new(PlantedPanic))
            }
            Plan::Timeout(statement) => match timeout(PATIENCE, D::slow(tx, statement)).await {
                Err(_) => Err(ApplyError::OwnTimeout),
                Ok(done) => done.map_err(ApplyError::Statement),
            },
            Plan::HiddenTimeout(statement) => {
                match timeout(PATIENCE, D::slow(tx, statement)).await {
                    Err(_) => Ok(()),
                    Ok(done) => done.map_err(ApplyError::Statement),
                }
            }
        }
    }

    /// Does a wrong if one is due, and returns what is answered then.
    async fn sabotage(
        &self,
        answer: Answer,
        effect: Effect,
        event: &Event,
    ) -> Result<Answer, Failure> {
        match answer {
            Answer::Processed if self.saboteur.is_due(Sabotage::ForgottenClaim) => {
                self.forget(event.source(), event.id()).await?;
            }
            Answer::PlantedError if self.saboteur.is_due(Sabotage::OutsideEffect) => {
                self.database.effect_outside(effect).await?;
            }
            Answer::PlantedError if self.saboteur.is_due(Sabotage::FalseDuplicate) => {
                return Ok(Answer::Duplicate);
            }
            _ => {}
        }
        Ok(answer)
    }

    async fn forget(&self, source: &Source, id: &EventId) -> Result<(), Failure> {
        use onceonly::ClaimRecords as _;
        let store = self.handlers.first().ok_or("no handler")?.store();
        store.forget(source, id, Duration::from_secs(30)).await?;
        Ok(())
    }
}

/// A type for some events, none of which plays a part in their identity.
fn delivery_type(number: u64) -> String {
    format!("soak.delivery_{}", number % 7)
}

fn of_panic(panic: &(dyn Any + Send)) -> (Answer, Option<String>) {
    if panic.is::<PlantedPanic>() {
        return (Answer::Panicked, None);
    }
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    (Answer::UnplannedPanic, text)
}

fn of_handled(handled: Handled) -> (Answer, Option<String>) {
    match handled {
        Ok(Outcome::Processed(())) => (Answer::Processed, None),
        Ok(Outcome::Duplicate(_)) => (Answer::Duplicate, None),
        Err(HandleError::Apply(ApplyError::Planted)) => (Answer::PlantedError, None),
        Err(HandleError::Apply(ApplyError::OwnTimeout)) => (Answer::OwnTimeout, None),
        Err(HandleError::Apply(failed)) => (Answer::StatementFailed, Some(failed.to_string())),
        Err(HandleError::Store(error)) => (
            Answer::store_error(error.kind()),
            Some(format!("{error:?}")),
        ),
        Err(other) => (Answer::OtherStoreError, Some(format!("{other:?}"))),
    }
}
