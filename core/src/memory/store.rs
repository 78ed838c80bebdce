//! The store itself.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::{Instant, timeout_at};

use super::MemoryTx;
use super::state::{Insert, Shared, Waiting, key};
use crate::{
    Claim, ClaimRecords, ClaimStore, Duplicate, Event, EventId, Forget, Source, StoreError,
    StoreErrorKind,
};

/// A transactional store in memory, for the unit tests of a team's handlers.
///
/// It keeps the contract as far as memory can: a racing claim waits, a dropped transaction rolls
/// back, claims of different keys run side by side. It forgets everything with the process, so it
/// never belongs in production. Clones share their data. Its clock is tokio's: a test with
/// `tokio::time::pause` can advance it by 30 days.
///
/// As a template for backends it shows the shape: guard first, then the await; the key is freed by
/// `Drop` and nothing else; the commit is one step.
#[derive(Clone, Default)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The committed value of `key`, as an outsider sees it.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Vec<u8>> {
        let tables = self.shared.lock();
        tables
            .data
            .get(key)
            .and_then(|cell| cell.value.as_deref())
            .map(<[u8]>::to_vec)
    }

    /// The keys that have a committed value, in order.
    #[must_use]
    pub fn keys(&self) -> Vec<String> {
        let tables = self.shared.lock();
        let live = tables.data.iter().filter(|(_, cell)| cell.value.is_some());
        let mut keys: Vec<String> = live.map(|(key, _)| key.clone()).collect();
        drop(tables);
        keys.sort_unstable();
        keys
    }

    /// How many claims wait for an open transaction right now.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.shared.lock().waiting
    }

    /// Makes the committed claim of `event` older, for tests of pruning.
    pub fn age(&self, event: &Event, by: Duration) {
        self.shared.lock().age(&key(event), by);
    }

    async fn insert(&self, event: &Event, wait: Duration) -> Result<Claim<MemoryTx>, StoreError> {
        let key = key(event);
        let deadline = Instant::now().checked_add(wait);
        loop {
            let held = match self.shared.lock().insert(&key) {
                Insert::Inserted(ended) => {
                    let shared = Arc::clone(&self.shared);
                    return Ok(Claim::Fresh(MemoryTx::new(shared, key, ended)));
                }
                Insert::Duplicate => return Ok(Claim::Duplicate(Duplicate::new())),
                Insert::Held(ended) => ended,
            };
            let ended = !wait.is_zero() && {
                let _waiting = Waiting::new(&self.shared);
                // The semaphore has no permits: acquiring ends only when the holder's end closes it.
                let ended = held.acquire();
                match deadline {
                    Some(deadline) => timeout_at(deadline, ended).await.is_ok(),
                    None => ended.await.is_err(),
                }
            };
            if !ended {
                return Err(StoreError::new(
                    StoreErrorKind::InFlight,
                    format!("its key was held for {wait:?}"),
                ));
            }
        }
    }
}

#[async_trait]
impl ClaimStore for MemoryStore {
    type Tx = MemoryTx;

    async fn claim(&self, event: &Event, wait: Duration) -> Result<Claim<MemoryTx>, StoreError> {
        self.insert(event, wait).await
    }

    async fn commit(&self, tx: MemoryTx) -> Result<(), StoreError> {
        tx.commit()
    }

    async fn rollback(&self, tx: MemoryTx) -> Result<(), StoreError> {
        drop(tx);
        Ok(())
    }

    async fn prune(&self, older_than: Duration, limit: u32) -> Result<u64, StoreError> {
        Ok(self.shared.lock().prune(older_than, limit as usize) as u64)
    }

    fn is_conflict(&self, error: &(dyn Error + 'static)) -> bool {
        let mut cause = Some(error);
        while let Some(error) = cause {
            if let Some(error) = error.downcast_ref::<StoreError>()
                && error.kind() == StoreErrorKind::Conflict
            {
                return true;
            }
            cause = error.source();
        }
        false
    }
}

#[async_trait]
impl ClaimRecords for MemoryStore {
    async fn is_claimed(&self, source: &Source, id: &EventId) -> Result<bool, StoreError> {
        Ok(self
            .shared
            .lock()
            .is_committed(&(source.clone(), id.clone())))
    }

    async fn forget(
        &self,
        source: &Source,
        id: &EventId,
        wait: Duration,
    ) -> Result<Forget, StoreError> {
        let event = Event::from_parts(source.clone(), id.clone());
        match self.insert(&event, wait).await? {
            Claim::Fresh(_rolled_back) => Ok(Forget::NotClaimed),
            Claim::Duplicate(_) => {
                let key = key(&event);
                let mut tables = self.shared.lock();
                if !tables.is_committed(&key) {
                    return Ok(Forget::NotClaimed);
                }
                tables.claims.remove(&key);
                drop(tables);
                Ok(Forget::Forgotten)
            }
        }
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tables = self.shared.lock();
        f.debug_struct("MemoryStore")
            .field("claims", &tables.claims.len())
            .field("waiting", &tables.waiting)
            .finish_non_exhaustive()
    }
}
