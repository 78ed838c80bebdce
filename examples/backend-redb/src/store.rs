//! The store itself.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use onceonly::{
    Claim, ClaimRecords, ClaimStore, Duplicate, Event, EventId, Forget, Source, StoreError,
    StoreErrorKind,
};
use redb::Database;

use crate::blocking::blocking;
use crate::writer::{Queue, Writer};
use crate::{RedbTx, error, statements};

/// Claims in a redb database, in the table [`PROCESSED_EVENTS`](crate::PROCESSED_EVENTS).
///
/// redb has one writer at a time: a claim that is open keeps all other events waiting too, and the
/// end of their wait is [`InFlight`](StoreErrorKind::InFlight). Make one store per process and clone
/// it: clones share a fair queue. Other writers of the same database, in this process or in another
/// one (`ConcurrencyMode::MultiWriter`), are waited for without a place in their queue.
///
/// Every future may be dropped at any await. A claim that was not handed over is rolled back on a
/// blocking thread; a commit that was begun ends there.
#[derive(Clone)]
pub struct RedbStore {
    queue: Arc<Queue>,
    acquire_timeout: Duration,
}

impl RedbStore {
    /// A store on this database, whose table the first claim makes.
    #[must_use]
    pub fn new(database: Arc<Database>) -> Self {
        Self {
            queue: Arc::new(Queue::new(database)),
            acquire_timeout: Duration::from_secs(5),
        }
    }

    /// How long [`prune`](ClaimStore::prune) waits for the writer, 5 s by default; then it ends as
    /// [`InFlight`](StoreErrorKind::InFlight).
    #[must_use]
    pub const fn with_acquire_timeout(mut self, timeout: Duration) -> Self {
        self.acquire_timeout = timeout;
        self
    }

    /// How many wait for the writer in this store's queue right now.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.queue.waiting()
    }

    async fn is_committed(&self, event: &Event) -> Result<bool, StoreError> {
        let database = Arc::clone(self.queue.database());
        let event = event.clone();
        blocking(StoreErrorKind::Unavailable, move || {
            statements::is_committed(&database, &event).map_err(error::statement)
        })
        .await
    }
}

/// Commits what `count` counted, or rolls back when that is nothing.
fn finish(writer: Writer, count: Result<u64, redb::Error>) -> Result<u64, StoreError> {
    let count = count.map_err(error::statement)?;
    if count == 0 {
        writer.abort().map_err(error::statement)?;
    } else {
        writer.commit().map_err(error::commit)?;
    }
    Ok(count)
}

#[async_trait]
impl ClaimStore for RedbStore {
    type Tx = RedbTx;

    async fn claim(&self, event: &Event, wait: Duration) -> Result<Claim<RedbTx>, StoreError> {
        // A duplicate is committed and readable by all: it need not wait for the writer.
        if self.is_committed(event).await? {
            return Ok(Claim::Duplicate(Duplicate::new()));
        }
        let writer = self.queue.begin(wait).await?;
        let event = event.clone();
        let claimed = blocking(StoreErrorKind::Unavailable, move || {
            RedbTx::claim(writer, event)
        });
        Ok(match claimed.await? {
            Some(tx) => Claim::Fresh(tx),
            None => Claim::Duplicate(Duplicate::new()),
        })
    }

    async fn commit(&self, tx: RedbTx) -> Result<(), StoreError> {
        blocking(StoreErrorKind::CommitUnknown, move || tx.commit()).await
    }

    async fn rollback(&self, tx: RedbTx) -> Result<(), StoreError> {
        blocking(StoreErrorKind::Unavailable, move || tx.rollback()).await
    }

    async fn prune(&self, older_than: Duration, limit: u32) -> Result<u64, StoreError> {
        let writer = self.queue.begin(self.acquire_timeout).await?;
        blocking(StoreErrorKind::CommitUnknown, move || {
            let pruned = statements::prune(&writer, older_than, limit);
            finish(writer, pruned)
        })
        .await
    }

    /// Never: with one writer there is nothing to conflict with.
    fn is_conflict(&self, _error: &(dyn Error + 'static)) -> bool {
        false
    }
}

#[async_trait]
impl ClaimRecords for RedbStore {
    async fn is_claimed(&self, source: &Source, id: &EventId) -> Result<bool, StoreError> {
        self.is_committed(&Event::from_parts(source.clone(), id.clone()))
            .await
    }

    async fn forget(
        &self,
        source: &Source,
        id: &EventId,
        wait: Duration,
    ) -> Result<Forget, StoreError> {
        let event = Event::from_parts(source.clone(), id.clone());
        let writer = self.queue.begin(wait).await?;
        let deleted = blocking(StoreErrorKind::CommitUnknown, move || {
            let deleted = statements::delete(&writer, &event).map(u64::from);
            finish(writer, deleted)
        });
        Ok(match deleted.await? {
            0 => Forget::NotClaimed,
            _ => Forget::Forgotten,
        })
    }
}

impl fmt::Debug for RedbStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedbStore")
            .field("waiting", &self.waiting())
            .field("acquire_timeout", &self.acquire_timeout)
            .finish_non_exhaustive()
    }
}
