//! The store: `ClaimStore` and `ClaimRecords` on one SQLite file.

use std::error::Error;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use onceonly::{
    Claim, ClaimRecords, ClaimStore, Duplicate, Event, EventId, Forget, Source, StoreError,
    StoreErrorKind,
};
use tempfile::TempDir;
use tokio::sync::OnceCell;
use tokio::time::{Instant, timeout, timeout_at};

use crate::blocking::{blocking, runtime};
use crate::claim::{Attempt, attempt, begin, is_claimed};
use crate::connection::Connector;
use crate::error::{self, failed, in_flight};
use crate::readers::Readers;
use crate::retry::Retry;
use crate::statements::Statements;
use crate::writer::{Waiting, Writer, WriterQueue};
use crate::{SqliteConfig, SqliteTx, commit, memory, migrate, settings};

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
    shared: Arc<Shared>,
}

struct Shared {
    queue: WriterQueue,
    readers: Arc<Readers>,
    checked: OnceCell<()>,
    statements: Arc<Statements>,
    connector: Arc<Connector>,
}

impl SqliteStore {
    /// How long `migrate` waits for claims that are open, in this process and in others.
    const MIGRATE_WAIT: Duration = Duration::from_secs(60);

    /// Opens the database in `path` with the defaults of [`SqliteConfig`]; the file is created if
    /// it is not there, and gets a write-ahead log.
    ///
    /// # Errors
    ///
    /// [`Unavailable`](StoreErrorKind::Unavailable) when the directory is missing, the file is
    /// read-only or stays locked, [`Schema`](StoreErrorKind::Schema) when it is not an SQLite
    /// database. A dropped future may have created the file.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        SqliteConfig::new(path).open().await
    }

    /// A new, migrated, empty database that goes with the last clone of the store and the last
    /// open transaction: for tests.
    ///
    /// It behaves as a file does, and can be read from outside at [`path`](Self::path) while claims
    /// are open, because it is one: with a write-ahead log, never synced, in `/dev/shm` on Linux
    /// and else in the system's temporary directory. SQLite's own databases in memory can't do
    /// that: `:memory:` has one connection, `vfs=memdb` no write-ahead log, so that readers are
    /// refused while a claim is open, and a shared cache answers `SQLITE_LOCKED` (measured). A
    /// killed process leaves the directory `onceonly-…` behind.
    ///
    /// # Errors
    ///
    /// [`Unavailable`](StoreErrorKind::Unavailable) when there is no room for it.
    pub async fn in_memory() -> Result<Self, StoreError> {
        let directory = blocking(memory::directory).await??;
        let store = Self::from_config(memory::config(&directory), Some(directory)).await?;
        store.migrate().await?;
        Ok(store)
    }

    pub(crate) async fn from_config(
        config: SqliteConfig,
        directory: Option<TempDir>,
    ) -> Result<Self, StoreError> {
        let limit = config.acquire_timeout;
        let statements = Arc::new(Statements::new(&config.table));
        let connector = Arc::new(Connector::new(config, directory));
        let mut retry = Retry::within(limit);
        let connection = loop {
            let creator = Arc::clone(&connector);
            match bounded(limit, move || creator.create()).await?? {
                Some(connection) => break connection,
                None if retry.pause().await => {}
                None => {
                    return Err(StoreError::new(
                        StoreErrorKind::Unavailable,
                        format!("the file stayed locked for {limit:?} while it was opened"),
                    ));
                }
            }
        };
        Ok(Self {
            shared: Arc::new(Shared {
                queue: WriterQueue::new(Arc::clone(&connector), connection),
                readers: Readers::new(Arc::clone(&connector)),
                checked: OnceCell::new(),
                statements,
                connector,
            }),
        })
    }

    /// Where the file is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.shared.connector.config.path
    }

    /// How many claims of this process wait for the writer right now.
    #[must_use]
    pub fn waiting(&self) -> u32 {
        self.shared.queue.waiting()
    }

    /// Brings the claim table up to this version: idempotent, in one transaction, and safe when ten
    /// processes do it at once.
    ///
    /// What was applied is written to `<table>_migrations`. A table that a team's own migration
    /// tool made from `migrations/sqlite/` has no such history and is accepted if it fits. Waits
    /// for open claims for at most a minute.
    ///
    /// # Errors
    ///
    /// [`Schema`](StoreErrorKind::Schema) when an applied migration was changed, when the schema
    /// says that it is incompatible with this version (a merely newer one is fine), and as
    /// [`check`](Self::check); [`InFlight`](StoreErrorKind::InFlight) when claims stayed open.
    /// After an error, and when the future is dropped before the commit, nothing has changed.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        // A setting such as an exclusive lock would keep BEGIN from ever succeeding.
        let connector = Arc::clone(&self.shared.connector);
        let verified = self.shared.readers.look("checking", move |connection| {
            Ok(settings::verify(connection, &connector.config))
        });
        verified.await??;
        let writer = self.begin(Self::MIGRATE_WAIT).await?;
        let statements = Arc::clone(&self.shared.statements);
        let migrated = blocking(move || {
            migrate::apply(writer.connection(), &statements)?;
            Ok::<_, StoreError>(writer)
        });
        let writer = migrated.await??;
        self.commit_open(writer).await
    }

    /// Looks at the settings and the schema that the guarantees rest on; the first claim does it
    /// too.
    ///
    /// Settings: the journal, `synchronous` and `locking_mode`. Schema: STRICT, the columns'
    /// types, the primary key (source, event_id) with BINARY collation, and no other unique index
    /// and no trigger, which could fake a duplicate.
    ///
    /// # Errors
    ///
    /// [`Schema`](StoreErrorKind::Schema), naming what is wrong and its fix.
    pub async fn check(&self) -> Result<(), StoreError> {
        let statements = Arc::clone(&self.shared.statements);
        let connector = Arc::clone(&self.shared.connector);
        let looked = self.shared.readers.look("checking", move |connection| {
            Ok(settings::verify(connection, &connector.config)
                .and_then(|()| migrate::require_compatible(connection, &statements)))
        });
        looked.await?
    }

    async fn ready(&self) -> Result<(), StoreError> {
        runtime()?;
        self.shared.checked.get_or_try_init(|| self.check()).await?;
        Ok(())
    }

    fn limit(&self) -> Duration {
        self.shared.connector.config.acquire_timeout
    }

    /// Whether a committed claim can be seen without the writer. `false` decides nothing.
    async fn is_seen(&self, event: &Event, deadline: Option<Instant>) -> bool {
        /// What an answer from the disk may take though the wait is over.
        const FLOOR: Duration = Duration::from_millis(250);
        let looking = self.look(event.source(), event.id());
        let seen = match deadline {
            Some(deadline) => timeout_at(deadline.max(Instant::now() + FLOOR), looking).await,
            None => Ok(looking.await),
        };
        matches!(seen, Ok(Ok(true)))
    }

    async fn look(&self, source: &Source, id: &EventId) -> Result<bool, StoreError> {
        let statements = Arc::clone(&self.shared.statements);
        let (source, id) = (source.clone(), id.clone());
        self.shared
            .readers
            .look("looking for the claim", move |connection| {
                is_claimed(connection, &statements, &source, &id)
            })
            .await
    }

    /// The writer, queueing for it until `deadline`.
    async fn turn(&self, deadline: Option<Instant>) -> Result<Writer, StoreError> {
        let queue = &self.shared.queue;
        if let Some(writer) = queue.try_turn() {
            return Ok(writer);
        }
        let _waiting = Waiting::new(queue);
        match deadline {
            Some(deadline) => timeout_at(deadline, queue.turn()).await.map_err(|_| {
                in_flight("another claim of this process held the writer for all of the wait")
            }),
            None => Ok(queue.turn().await),
        }
    }

    /// The writer with an open transaction that holds the file's write lock.
    async fn begin(&self, wait: Duration) -> Result<Writer, StoreError> {
        let deadline = Instant::now().checked_add(wait);
        let mut writer = self.turn(deadline).await?;
        let mut retry = Retry::until(deadline);
        let mut waiting = None;
        loop {
            let begun = bounded(self.limit(), move || {
                Ok::<_, StoreError>((begin(&mut writer)?, writer))
            });
            writer = match begun.await?? {
                (true, writer) => return Ok(writer),
                (false, writer) => writer,
            };
            waiting.get_or_insert_with(|| Waiting::new(&self.shared.queue));
            if !retry.pause().await {
                return Err(locked_elsewhere());
            }
        }
    }

    /// Commits what is open. Dropping the future between two attempts rolls back.
    async fn commit_open(&self, mut writer: Writer) -> Result<(), StoreError> {
        let mut retry = Retry::within(self.limit());
        loop {
            let committed = blocking(move || match commit::commit(&mut writer) {
                Ok(true) => Ok(None),
                Ok(false) => Ok(Some(writer)),
                Err(error) => Err(error),
            });
            match committed.await?? {
                None => return Ok(()),
                Some(blocked) => writer = blocked,
            }
            if !retry.pause().await {
                return Err(blocking(move || commit::blocked(&mut writer)).await?);
            }
        }
    }
}

/// Runs `work` on a blocking thread, if there is one in time.
async fn bounded<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, StoreError> {
    runtime()?;
    timeout(limit, blocking(work)).await.unwrap_or_else(|_| {
        Err(StoreError::new(
            StoreErrorKind::Unavailable,
            format!("no blocking thread, or no answer from the disk, within {limit:?}"),
        ))
    })
}

fn locked_elsewhere() -> StoreError {
    in_flight("another process held the file's write lock for all of the wait")
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
            match commit::commit(&mut writer) {
                Ok(true) => Ok(None),
                Ok(false) => Ok(Some(writer)),
                Err(error) => Err(error),
            }
        });
        let proven = proven.await.map_err(|error| {
            StoreError::new(StoreErrorKind::CommitUnknown, "the commit was not run")
                .with_source(error)
        })?;
        match proven? {
            None => Ok(()),
            Some(writer) => self.commit_open(writer).await,
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

#[async_trait]
impl ClaimRecords for SqliteStore {
    async fn is_claimed(&self, source: &Source, id: &EventId) -> Result<bool, StoreError> {
        self.ready().await?;
        self.look(source, id).await
    }

    async fn forget(
        &self,
        source: &Source,
        id: &EventId,
        wait: Duration,
    ) -> Result<Forget, StoreError> {
        self.ready().await?;
        let writer = self.begin(wait).await?;
        let statements = Arc::clone(&self.shared.statements);
        let (source, id) = (source.clone(), id.clone());
        let deleted = blocking(move || {
            let deleted = writer
                .connection()
                .prepare_cached(&statements.forget)
                .and_then(|mut forget| forget.execute((source.as_str(), id.as_str())))
                .map_err(|error| failed("forgetting the claim", error))?;
            Ok::<_, StoreError>((deleted, writer))
        });
        let (deleted, writer) = deleted.await??;
        if deleted == 0 {
            return Ok(Forget::NotClaimed);
        }
        self.commit_open(writer).await?;
        Ok(Forget::Forgotten)
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
