//! A store over [`MemoryStore`] that makes one mistake.

use std::collections::HashSet;
use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use onceonly::{
    Claim, ClaimStore, Duplicate, Event, EventId, MemoryStore, MemoryTx, Source, StoreError,
    StoreErrorKind,
};

use crate::{Fault, FaultyTx};

/// A store over [`MemoryStore`] that makes one mistake. Clones share their data.
#[derive(Debug, Clone)]
pub struct FaultyStore {
    pub(crate) fault: Fault,
    pub(crate) inner: MemoryStore,
    /// What a store without a unique index knows of.
    pub(crate) known: Arc<Mutex<HashSet<(Source, EventId)>>>,
}

impl FaultyStore {
    /// An empty store that makes this mistake.
    #[must_use]
    pub fn new(fault: Fault) -> Self {
        Self {
            fault,
            inner: MemoryStore::new(),
            known: Arc::default(),
        }
    }

    /// The key as the faulty table would keep it.
    pub(crate) fn stored(&self, event: &Event) -> Event {
        let id = event.id().as_str();
        let (source, id) = if self.fault.is(Fault::CaseFoldingKey) {
            (event.source().as_str(), id.to_lowercase())
        } else if self.fault.is(Fault::TruncatingKey) {
            let end = (0..=64.min(id.len()))
                .rev()
                .find(|end| id.is_char_boundary(*end));
            (event.source().as_str(), id[..end.unwrap_or(0)].to_owned())
        } else if self.fault.is(Fault::TrimmingKey) && !id.trim_end().is_empty() {
            (event.source().as_str(), id.trim_end().to_owned())
        } else if self.fault.is(Fault::KeyWithoutSource) {
            ("any", id.to_owned())
        } else {
            (event.source().as_str(), id.to_owned())
        };
        Event::new(source, id).unwrap_or_else(|_| event.clone())
    }

    /// A transaction that holds no key which anybody else could want.
    pub(crate) async fn aside(&self) -> Result<MemoryTx, StoreError> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let id = COUNT.fetch_add(1, Ordering::Relaxed);
        let event = Event::new("faulty-stores/aside", id.to_string())?;
        let claim = self.inner.claim(&event, Duration::ZERO).await?;
        claim
            .fresh()
            .ok_or_else(|| StoreError::new(StoreErrorKind::Other, "the key was taken"))
    }

    fn knows(&self, event: &Event) -> bool {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.contains(&(event.source().clone(), event.id().clone()))
    }

    async fn waited(&self, event: &Event, wait: Duration) -> Result<Claim<MemoryTx>, StoreError> {
        match self.inner.claim(event, Duration::ZERO).await {
            Err(error) if error.kind() == StoreErrorKind::InFlight => {}
            at_once => return at_once,
        }
        if self.fault.is(Fault::DuplicateWhileOpen) {
            return Ok(Claim::Duplicate(Duplicate::new()));
        }
        if self.fault.is(Fault::WaitIgnored) {
            return Err(StoreError::new(StoreErrorKind::InFlight, "held"));
        }
        let wait = if self.fault.is(Fault::UnboundedWait) {
            Duration::MAX
        } else {
            wait
        };
        let answer = self.inner.claim(event, wait).await?;
        if matches!(answer, Claim::Fresh(_)) {
            if self.fault.is(Fault::DeadlockShown) {
                return Err(StoreError::new(StoreErrorKind::Conflict, "deadlock found"));
            }
            if self.fault.is(Fault::StaleWaiter) {
                return Ok(Claim::Duplicate(Duplicate::new()));
            }
        }
        Ok(answer)
    }
}

#[async_trait]
impl ClaimStore for FaultyStore {
    type Tx = FaultyTx;

    async fn claim(&self, event: &Event, wait: Duration) -> Result<Claim<FaultyTx>, StoreError> {
        let event = self.stored(event);
        if self.fault.is(Fault::SelectThenInsert) {
            if self.knows(&event) {
                return Ok(Claim::Duplicate(Duplicate::new()));
            }
            tokio::task::yield_now().await;
            let tx = self.aside().await?;
            return Ok(Claim::Fresh(FaultyTx::new(self.clone(), event, tx)));
        }
        match self.waited(&event, wait).await? {
            Claim::Duplicate(duplicate) => Ok(Claim::Duplicate(duplicate)),
            Claim::Fresh(tx) if self.fault.is(Fault::ClaimCommittedFirst) => {
                self.inner.commit(tx).await?;
                let tx = self.aside().await?;
                Ok(Claim::Fresh(FaultyTx::new(self.clone(), event, tx)))
            }
            Claim::Fresh(tx) => Ok(Claim::Fresh(FaultyTx::new(self.clone(), event, tx))),
        }
    }

    async fn commit(&self, tx: FaultyTx) -> Result<(), StoreError> {
        tx.commit().await
    }

    async fn rollback(&self, tx: FaultyTx) -> Result<(), StoreError> {
        tx.rollback().await
    }

    async fn prune(&self, older_than: Duration, limit: u32) -> Result<u64, StoreError> {
        let limit = if self.fault.is(Fault::PruneWithoutLimit) {
            u32::MAX
        } else {
            limit
        };
        let age = if self.fault.is(Fault::PruneWithoutAge) {
            Duration::ZERO
        } else {
            older_than
        };
        self.inner.prune(age, limit).await
    }

    fn is_conflict(&self, error: &(dyn Error + 'static)) -> bool {
        self.inner.is_conflict(error)
    }
}
