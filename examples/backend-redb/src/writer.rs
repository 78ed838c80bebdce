//! The queue for the one writer that redb has, and the write transaction at its end.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use onceonly::{StoreError, StoreErrorKind};
use redb::{CommitError, Database, StorageError, TransactionError, WriteTransaction};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout_at};

use crate::blocking::blocking;
use crate::error;

const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(32);

/// Fair among those who share it. Who is first in it meets the writers of other queues and other
/// processes, and these are not queued: it tries again and again.
pub(crate) struct Queue {
    database: Arc<Database>,
    turn: Arc<Semaphore>,
    waiting: AtomicUsize,
}

impl Queue {
    pub(crate) fn new(database: Arc<Database>) -> Self {
        Self {
            database,
            turn: Arc::new(Semaphore::new(1)),
            waiting: AtomicUsize::new(0),
        }
    }

    pub(crate) const fn database(&self) -> &Arc<Database> {
        &self.database
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Begins a write transaction; `InFlight` when the writer was held for all of `wait`.
    pub(crate) async fn begin(&self, wait: Duration) -> Result<Writer, StoreError> {
        let deadline = Deadline {
            wait,
            at: Instant::now().checked_add(wait),
        };
        let mut waiting = None;
        let mut turn = match Arc::clone(&self.turn).try_acquire_owned() {
            Ok(turn) => turn,
            Err(_) => {
                waiting = Some(Waiting::new(&self.waiting));
                let turn = deadline.limit(Arc::clone(&self.turn).acquire_owned());
                turn.await?.map_err(|closed| {
                    StoreError::new(StoreErrorKind::Unavailable, "the queue is closed")
                        .with_source(closed)
                })?
            }
        };
        let mut pause = SHORTEST_PAUSE;
        loop {
            turn = match self.try_begin(turn).await? {
                Attempt::Begun(writer) => return Ok(writer),
                Attempt::Busy(turn) => turn,
            };
            waiting.get_or_insert_with(|| Waiting::new(&self.waiting));
            let jitter = rand::random_range(pause / 2..=pause);
            deadline.limit(sleep(jitter)).await?;
            pause = LONGEST_PAUSE.min(pause * 2);
        }
    }

    /// Tries once. Waiting inside redb instead could not be given up.
    async fn try_begin(&self, turn: OwnedSemaphorePermit) -> Result<Attempt, StoreError> {
        let database = Arc::clone(&self.database);
        let runtime = Handle::current();
        blocking(StoreErrorKind::Unavailable, move || {
            match database.try_begin_write() {
                Ok(transaction) => Ok(Attempt::Begun(Writer::new(transaction, turn, runtime))),
                Err(TransactionError::WouldBlock) => Ok(Attempt::Busy(turn)),
                Err(error) => Err(error::statement(error)),
            }
        })
        .await
    }
}

enum Attempt {
    Begun(Writer),
    Busy(OwnedSemaphorePermit),
}

struct Deadline {
    wait: Duration,
    at: Option<Instant>,
}

impl Deadline {
    async fn limit<F: Future>(&self, future: F) -> Result<F::Output, StoreError> {
        match self.at {
            Some(at) => timeout_at(at, future).await.map_err(|_| {
                let message = format!("the writer was held for {:?}", self.wait);
                StoreError::new(StoreErrorKind::InFlight, message)
            }),
            None => Ok(future.await),
        }
    }
}

/// Counts one who waits for as long as it lives, also when its future is dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// An open write transaction and the turn in the queue that it took.
///
/// Dropping it rolls back on a blocking thread, and the next in the queue begins after that.
pub(crate) struct Writer {
    /// Goes before `rollback`, whose reference is the last one then: so the transaction can be
    /// moved to another thread in a `Drop`, and is always there to deref to.
    transaction: Arc<WriteTransaction>,
    rollback: Rollback,
}

struct Rollback {
    /// In this order: the rollback, then the turn.
    held: Option<(Arc<WriteTransaction>, OwnedSemaphorePermit)>,
    runtime: Handle,
}

impl Writer {
    fn new(transaction: WriteTransaction, turn: OwnedSemaphorePermit, runtime: Handle) -> Self {
        let transaction = Arc::new(transaction);
        Self {
            transaction: Arc::clone(&transaction),
            rollback: Rollback {
                held: Some((transaction, turn)),
                runtime,
            },
        }
    }

    /// Commits, blocking the thread.
    pub(crate) fn commit(self) -> Result<(), CommitError> {
        match self.into_parts() {
            Some((transaction, _turn)) => transaction.commit(),
            None => Err(CommitError::TransactionPoisoned),
        }
    }

    /// Rolls back, blocking the thread.
    pub(crate) fn abort(self) -> Result<(), StorageError> {
        match self.into_parts() {
            Some((transaction, _turn)) => transaction.abort(),
            None => Ok(()),
        }
    }

    /// Always there: nobody else has a reference.
    fn into_parts(self) -> Option<(WriteTransaction, OwnedSemaphorePermit)> {
        let Self {
            transaction,
            mut rollback,
        } = self;
        drop(transaction);
        let (transaction, turn) = rollback.held.take()?;
        Some((Arc::into_inner(transaction)?, turn))
    }
}

impl Deref for Writer {
    type Target = WriteTransaction;

    fn deref(&self) -> &WriteTransaction {
        &self.transaction
    }
}

impl Drop for Rollback {
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            // Not here: redb leaks a transaction's pages when it is dropped during a panic.
            self.runtime.spawn_blocking(move || drop(held));
        }
    }
}
