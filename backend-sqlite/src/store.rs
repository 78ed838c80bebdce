//! The store: `ClaimStore` on one SQLite file.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use onceonly::{Claim, ClaimStore, Duplicate, Event, StoreError, StoreErrorKind};
use tokio::sync::OnceCell;
use tokio::time::Instant;

use crate::blocking::{blocking, bounded};
use crate::claim::{Attempt, attempt};
use crate::commit::Committed;
use crate::connection::Connector;
use crate::error::{self, failed, locked_elsewhere};
use crate::readers::Readers;
use crate::retry::Retry;
use crate::statements::Statements;
use crate::writer::{Waiting, WriterQueue};
use crate::{SqliteTx, commit};

/// Claims in an SQLite file, beside the data that `apply` changes.
///
/// Open one per file and process, and clone it: clones share the queue for the one writer, which is
/// first come, first served. Other processes, and other stores on the same file, take turns with
/// this one by the file's lock, for which each asks again and again without blocking a thread.
///
/// The file must be on a local file system: network file systems are not supported, as their locks
/// and shared memory don't keep SQLite's promises (<https://sqlite.org/faq.html#q5>). Link one copy
/// of SQLite per process, and don't use the store in a forked child
/// (<https://sqlite.org/howtocorrupt.html>).
///
/// ```
/// use onceonly::{Event, Handler};
/// use onceonly_sqlite::SqliteStore;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("billing.db");
/// let store = SqliteStore::open(&path).await?;
/// store.migrate().await?;
/// let handler = Handler::new(store);
///
/// let event = Event::new("stripe", "evt_1")?;
/// let outcome = handler
///     .handle(&event, async |tx| tx.execute_batch("CREATE TABLE accounts (id TEXT)"))
///     .await?;
/// assert!(!outcome.is_duplicate());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct SqliteStore {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) queue: WriterQueue,
    pub(crate) readers: Arc<Readers>,
    pub(crate) checked: OnceCell<()>,
    pub(crate) statements: Arc<Statements>,
    pub(crate) connector: Arc<Connector>,
}

#[async_trait]
impl ClaimStore for SqliteStore {
    type Tx = SqliteTx;

    /// As the trait says. On SQLite an open claim of *any* event holds the writer, so `InFlight`
    /// may mean another event. A duplicate that is already committed is seen without waiting.
    async fn claim(&self, event: &Event, wait: Duration) -> Result<Claim<SqliteTx>, StoreError> {
        self.ready().await?;
        let deadline = Instant::now().checked_add(wait);
        let queue = &self.shared.queue;
        let mut writer = match queue.try_turn() {
            Some(writer) => writer,
            None if self.is_seen(event, deadline).await => {
                return Ok(Claim::Duplicate(Duplicate::new()));
            }
            None => match self.turn(deadline).await {
                Ok(writer) => writer,
                Err(_) if self.is_seen(event, deadline).await => {
                    return Ok(Claim::Duplicate(Duplicate::new()));
                }
                Err(error) => return Err(error),
            },
        };
        let mut retry = Retry::until(deadline);
        let mut waiting = None;
        loop {
            let statements = Arc::clone(&self.shared.statements);
            let claimed = event.clone();
            let attempted = bounded(self.limit(), move || attempt(writer, &claimed, statements));
            writer = match attempted.await?? {
                Attempt::Fresh(tx) => return Ok(Claim::Fresh(tx)),
                Attempt::Duplicate => return Ok(Claim::Duplicate(Duplicate::new())),
                Attempt::Busy(writer) => writer,
            };
            waiting.get_or_insert_with(|| Waiting::new(queue));
            if !retry.pause().await {
                return Err(locked_elsewhere());
            }
        }
    }

    async fn commit(&self, tx: SqliteTx) -> Result<(), StoreError> {
        let (mut writer, claim, statements) = tx.into_parts()?;
        let proven = blocking(move || {
            commit::prove(&mut writer, &claim, &statements)?;
            commit::commit(writer)
        });
        let proven = proven.await.map_err(|error| {
            StoreError::new(StoreErrorKind::CommitUnknown, "the commit was not run")
                .with_source(error)
        })?;
        match proven? {
            Committed::Yes => Ok(()),
            Committed::NotYet(writer) => self.commit_open(writer).await,
        }
    }

    async fn rollback(&self, tx: SqliteTx) -> Result<(), StoreError> {
        // Without a connection the rollback has taken place.
        let Ok((mut writer, claim, statements)) = tx.into_parts() else {
            return Ok(());
        };
        blocking(move || commit::rollback(&mut writer, &claim, &statements)).await?
    }

    /// As the trait says, in transactions of at most 1,000 claims each. Looks first, and takes the
    /// writer only when something is old enough; then it waits for the writer, which an open claim
    /// of any event holds, for at most the configuration's `acquire_timeout`.
    async fn prune(&self, older_than: Duration, limit: u32) -> Result<u64, StoreError> {
        const BATCH: u32 = 1_000;
        self.ready().await?;
        let micros = i64::try_from(older_than.as_micros()).unwrap_or(i64::MAX);
        let statements = &self.shared.statements;
        let mut pruned = 0;
        while pruned < u64::from(limit) {
            let looking = Arc::clone(statements);
            let any = self
                .shared
                .readers
                .look("looking for old claims", move |db| {
                    db.prepare_cached(&looking.any_older)?
                        .query_row([micros], |row| row.get::<_, bool>(0))
                });
            if !any.await? {
                break;
            }
            let batch = u64::from(BATCH).min(u64::from(limit) - pruned);
            let deleting = Arc::clone(statements);
            let writer = self.begin(self.limit()).await?;
            let deleted = blocking(move || {
                let deleted = writer
                    .connection()
                    .prepare_cached(&deleting.prune)
                    .and_then(|mut prune| prune.execute((micros, batch as i64)))
                    .map_err(|error| failed("pruning", error))?;
                Ok::<_, StoreError>((deleted as u64, writer))
            });
            let (deleted, writer) = deleted.await??;
            self.commit_open(writer).await?;
            pruned += deleted;
        }
        Ok(pruned)
    }

    /// Whether it was `SQLITE_BUSY` in any of its forms, `SQLITE_PROTOCOL` or
    /// `SQLITE_LOCKED_SHAREDCACHE`. `apply` meets them only on databases that it attached or opened
    /// itself: a claim's transaction has its file's write lock from the start.
    fn is_conflict(&self, error: &(dyn Error + 'static)) -> bool {
        error::is_conflict(error)
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore")
            .field("config", &self.shared.connector.config)
            .field("waiting", &self.waiting())
            .finish_non_exhaustive()
    }
}
