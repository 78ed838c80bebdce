//! Claim, apply, commit: the whole of handling one delivery.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use tokio::time::{Instant, sleep, timeout};

use crate::flight::{Flights, Waited};
use crate::limits::Limits;
use crate::report::Report;
use crate::{
    Claim, ClaimGuard, ClaimStore, Event, HandleError, Outcome, StoreError, StoreErrorKind,
};

/// Handles deliveries: each event's effects are committed once, together with its claim.
///
/// Build one per process and clone it: clones share the queue in which racing deliveries of one
/// event wait without holding a connection. The guarantee does not rest on that queue but on the
/// store's unique index, so any number of processes and handlers may share a database.
///
/// It needs a tokio runtime with its timer on. Any future of it may be dropped at any await.
///
/// ```
/// use onceonly::{Event, Handler, MemoryStore, Outcome};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let handler = Handler::new(MemoryStore::new());
/// let event = Event::new("stripe", "evt_1")?.with_type("invoice.paid")?;
///
/// for delivery in ["first", "second"] {
///     let outcome = handler
///         .handle(&event, async |tx| {
///             tx.put("credited", "10 euros");
///             Ok::<_, std::convert::Infallible>(())
///         })
///         .await?;
///     assert_eq!(outcome.is_duplicate(), delivery == "second");
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Handler<S> {
    store: Arc<S>,
    flights: Arc<Flights>,
    limits: Limits,
}

impl<S: ClaimStore> Handler<S> {
    /// A handler with the default limits: `wait` 2 s, `apply` 30 s, commit and rollback 30 s each,
    /// 5 re-runs.
    pub fn new(store: S) -> Self {
        Self {
            store: Arc::new(store),
            flights: Arc::new(Flights::default()),
            limits: Limits::DEFAULT,
        }
    }

    /// How long a delivery may wait for another of the same event, in this process and in the
    /// database together, before it ends as [`InFlight`](StoreErrorKind::InFlight).
    ///
    /// Zero tries once; [`Duration::MAX`] waits without a limit. For one call:
    /// `handler.clone().with_wait(…).handle(…)`, which shares the queue.
    #[must_use]
    pub const fn with_wait(mut self, wait: Duration) -> Self {
        self.limits.wait = wait;
        self
    }

    /// How long `apply` may run in [`handle`](Self::handle) before it is dropped, rolled back and
    /// ends as [`ApplyTimedOut`](StoreErrorKind::ApplyTimedOut). [`Duration::MAX`] turns it off.
    #[must_use]
    pub const fn with_apply_limit(mut self, limit: Duration) -> Self {
        self.limits.apply = limit;
        self
    }

    /// How long a commit or a rollback may take before the connection is given up. A commit then
    /// ends as [`CommitUnknown`](StoreErrorKind::CommitUnknown).
    #[must_use]
    pub const fn with_commit_limit(mut self, limit: Duration) -> Self {
        self.limits.settle = limit;
        self
    }

    /// How often [`handle_retrying`](Self::handle_retrying) runs `apply` again, at most.
    #[must_use]
    pub const fn with_reruns(mut self, reruns: u32) -> Self {
        self.limits.reruns = reruns;
        self
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &S {
        &self.store
    }

    /// How many events are being delivered through this handler and its clones right now.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.flights.len()
    }

    /// Claims the event and hands its open transaction over, for code that wants no closure.
    ///
    /// The limit on `apply` is the caller's own here.
    ///
    /// ```
    /// use onceonly::{Claim, Event, Handler, MemoryStore};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// let handler = Handler::new(MemoryStore::new());
    /// let event = Event::new("stripe", "evt_1")?;
    ///
    /// match handler.begin(&event).await? {
    ///     Claim::Fresh(mut claim) => {
    ///         claim.put("credited", "10 euros");
    ///         claim.commit().await?;
    ///     }
    ///     Claim::Duplicate(_) => unreachable!("nobody else delivers here"),
    /// }
    /// assert!(handler.begin(&event).await?.is_duplicate());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`ClaimStore::claim`]. After an error, and when the future is dropped, nothing is claimed.
    pub async fn begin(&self, event: &Event) -> Result<Claim<ClaimGuard<S>>, StoreError> {
        let report = Report::new(event);
        let deadline = Instant::now().checked_add(self.limits.wait);
        let lead = match self.flights.join(event).wait(deadline).await {
            Waited::Lead(lead) => lead,
            Waited::Settled => {
                report.duplicate();
                return Ok(Claim::Duplicate(crate::Duplicate::new()));
            }
            Waited::Late => {
                let error = StoreError::new(
                    StoreErrorKind::InFlight,
                    "another delivery in this process holds the event",
                );
                report.claim_failed(&error);
                return Err(error);
            }
        };
        let left = deadline.map_or(Duration::MAX, |deadline| {
            deadline.saturating_duration_since(Instant::now())
        });
        match self.store.claim(event, left).await {
            Ok(Claim::Fresh(tx)) => {
                report.claimed();
                let store = Arc::clone(&self.store);
                let (limit, waited) = (self.limits.settle, report.elapsed());
                Ok(Claim::Fresh(ClaimGuard::new(
                    tx, lead, store, limit, waited,
                )))
            }
            Ok(Claim::Duplicate(duplicate)) => {
                lead.settle();
                report.duplicate();
                Ok(Claim::Duplicate(duplicate))
            }
            Err(error) => {
                report.claim_failed(&error);
                Err(error)
            }
        }
    }

    /// Claims the event, runs `apply` in the claim's transaction, and commits both together.
    ///
    /// `apply` runs at most once per call, and not at all for a duplicate. Only what it does through
    /// the transaction is undone when something fails: mails, calls and files belong after
    /// [`Outcome::Processed`] or in an outbox table.
    ///
    /// # Errors
    ///
    /// [`HandleError::Apply`] with the error that `apply` returned, unchanged, after the rollback;
    /// [`HandleError::Store`] as [`ClaimStore::claim`] and [`ClaimStore::commit`] say, or
    /// [`ApplyTimedOut`](StoreErrorKind::ApplyTimedOut). A panic in `apply` rolls back and goes on.
    /// When the future is dropped before the commit began, everything is rolled back; during the
    /// commit, claim and effects are both there or both absent, and the next delivery is right
    /// either way. Called for the same event inside its own `apply`, it ends as
    /// [`InFlight`](StoreErrorKind::InFlight).
    pub async fn handle<T, E, F>(
        &self,
        event: &Event,
        apply: F,
    ) -> Result<Outcome<T>, HandleError<E>>
    where
        F: AsyncFnOnce(&mut S::Tx) -> Result<T, E>,
    {
        let mut claim = match self.begin(event).await? {
            Claim::Fresh(claim) => claim,
            Claim::Duplicate(duplicate) => return Ok(Outcome::Duplicate(duplicate)),
        };
        let report = Report::after(event, claim.waited());
        let error = match timeout(self.limits.apply, apply(&mut claim)).await {
            Ok(Ok(value)) => {
                let committed = claim.commit().await;
                report.committed(&committed);
                return Ok(committed.map(|()| Outcome::Processed(value))?);
            }
            Ok(Err(error)) => HandleError::Apply(error),
            Err(_) => HandleError::Store(StoreError::new(
                StoreErrorKind::ApplyTimedOut,
                format!("limit {:?}", self.limits.apply),
            )),
        };
        let rolled_back = claim.rollback().await;
        report.rolled_back(error.as_store(), &rolled_back);
        Err(error)
    }

    /// As [`handle`](Self::handle), and runs `apply` again in a new transaction after a
    /// serialization failure or deadlock, in `apply` or at COMMIT.
    ///
    /// Each run claims anew, with the whole of `wait`, after a short, growing, random pause. A
    /// commit whose outcome is unknown is never re-run. `apply` must tolerate being run again: what
    /// it did outside the transaction is not undone.
    ///
    /// Whether an error of `apply` is a conflict is looked up along [`source`](Error::source), so the
    /// driver's error must be there: a variant that is `#[error(transparent)]` in `thiserror` skips
    /// it, and `#[error("crediting failed")] Database(#[source] DriverError)` keeps it.
    ///
    /// # Errors
    ///
    /// As [`handle`](Self::handle); the conflict itself after the last re-run.
    pub async fn handle_retrying<T, E, F>(
        &self,
        event: &Event,
        apply: F,
    ) -> Result<Outcome<T>, HandleError<E>>
    where
        F: AsyncFnOnce(&mut S::Tx) -> Result<T, E> + Clone,
        E: Error + 'static,
    {
        let mut pauses = ExponentialBuilder::default()
            .with_jitter()
            .with_min_delay(Duration::from_millis(5))
            .with_max_delay(Duration::from_millis(500))
            .with_max_times(self.limits.reruns as usize)
            .build();
        loop {
            let error = match self.handle(event, apply.clone()).await {
                Ok(outcome) => return Ok(outcome),
                Err(error) => error,
            };
            let conflict = match &error {
                HandleError::Apply(error) => self.store.is_conflict(error),
                HandleError::Store(error) => error.kind() == StoreErrorKind::Conflict,
            };
            match pauses.next().filter(|_| conflict) {
                Some(pause) => {
                    Report::new(event).rerun(pause);
                    sleep(pause).await;
                }
                None => return Err(error),
            }
        }
    }
}

impl<S> Clone for Handler<S> {
    fn clone(&self) -> Self {
        Self {
            store: Arc::clone(&self.store),
            flights: Arc::clone(&self.flights),
            limits: self.limits,
        }
    }
}

impl<S> fmt::Debug for Handler<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handler")
            .field("limits", &self.limits)
            .field("flights", &self.flights)
            .finish_non_exhaustive()
    }
}
