//! An open claim in the caller's hands.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use crate::flight::Lead;
use crate::{ClaimStore, StoreError, StoreErrorKind};

/// An open claim: the event's key is inserted, uncommitted, in the transaction that this derefs to.
///
/// Got from [`Handler::begin`](crate::Handler::begin). Run the side effects on it and
/// [`commit`](Self::commit); dropping it instead, at any point, rolls back and lets the next
/// delivery of the event in.
#[must_use = "a claim that is not committed is rolled back"]
pub struct ClaimGuard<S: ClaimStore> {
    // Dropped in this order: the transaction ends before the next delivery in the process starts.
    tx: S::Tx,
    lead: Lead,
    store: Arc<S>,
    limit: Duration,
    waited: Duration,
}

impl<S: ClaimStore> ClaimGuard<S> {
    pub(crate) const fn new(
        tx: S::Tx,
        lead: Lead,
        store: Arc<S>,
        limit: Duration,
        waited: Duration,
    ) -> Self {
        Self {
            tx,
            lead,
            store,
            limit,
            waited,
        }
    }

    /// How long the claim took, waiting for other deliveries of the event included.
    #[must_use]
    pub const fn waited(&self) -> Duration {
        self.waited
    }

    /// Commits the claim and all effects, together.
    ///
    /// After `Ok` both are durable, and deliveries of the event that wait are duplicates.
    ///
    /// # Errors
    ///
    /// As [`ClaimStore::commit`];
    /// [`CommitUnknown`](StoreErrorKind::CommitUnknown) also when the handler's commit limit passed
    /// first, and the same holds when this future is dropped: the connection is given up, and the
    /// next delivery finds out what became of it.
    pub async fn commit(self) -> Result<(), StoreError> {
        let Self {
            tx,
            lead,
            store,
            limit,
            ..
        } = self;
        match timeout(limit, store.commit(tx)).await {
            Ok(Ok(())) => {
                lead.settle();
                Ok(())
            }
            Ok(Err(error)) => Err(error),
            Err(_) => Err(StoreError::new(
                StoreErrorKind::CommitUnknown,
                format!("no answer to COMMIT within {limit:?}"),
            )),
        }
    }

    /// Rolls back and returns when the key is free again.
    ///
    /// # Errors
    ///
    /// As [`ClaimStore::rollback`]; [`Unavailable`](StoreErrorKind::Unavailable) when the handler's
    /// commit limit passed first. Nothing is committed in any case, and dropping this future leaves
    /// the rollback to the background.
    pub async fn rollback(self) -> Result<(), StoreError> {
        let Self {
            tx,
            lead,
            store,
            limit,
            ..
        } = self;
        let result = timeout(limit, store.rollback(tx)).await;
        drop(lead);
        result.unwrap_or_else(|_| {
            Err(StoreError::new(
                StoreErrorKind::Unavailable,
                format!("no answer to ROLLBACK within {limit:?}"),
            ))
        })
    }
}

impl<S: ClaimStore> Deref for ClaimGuard<S> {
    type Target = S::Tx;

    fn deref(&self) -> &S::Tx {
        &self.tx
    }
}

impl<S: ClaimStore> DerefMut for ClaimGuard<S> {
    fn deref_mut(&mut self) -> &mut S::Tx {
        &mut self.tx
    }
}

impl<S: ClaimStore> fmt::Debug for ClaimGuard<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClaimGuard")
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}
