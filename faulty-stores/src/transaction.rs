//! The transaction of a store that makes one mistake.

use std::sync::PoisonError;
use std::time::Duration;

use onceonly::{
    Claim, ClaimFate, ClaimStore, Event, MemorySavepoint, MemoryTx, StoreError, StoreErrorKind,
};

use crate::{Fault, FaultyStore};

/// The transaction of a [`FaultyStore`].
#[derive(Debug)]
pub struct FaultyTx {
    store: FaultyStore,
    event: Event,
    inner: Option<MemoryTx>,
    /// Before any effect.
    start: MemorySavepoint,
    doomed: bool,
    /// A statement was sent and its reply not read.
    unread: bool,
}

impl FaultyTx {
    pub(crate) fn new(store: FaultyStore, event: Event, tx: MemoryTx) -> Self {
        Self {
            start: tx.savepoint(),
            store,
            event,
            inner: Some(tx),
            doomed: false,
            unread: false,
        }
    }

    /// Writes an effect.
    pub(crate) async fn put(&mut self, key: String) -> Result<(), StoreError> {
        if self.store.fault.is(Fault::EffectElsewhere) {
            let mut elsewhere = self.store.aside().await?;
            elsewhere.put(key, "1");
            return self.store.inner.commit(elsewhere).await;
        }
        if let Some(inner) = &mut self.inner {
            inner.put(key, "1");
        }
        Ok(())
    }

    /// Writes an effect and takes it back by a savepoint.
    pub(crate) fn put_and_return(&mut self, key: String) {
        if let Some(inner) = &mut self.inner {
            let savepoint = inner.savepoint();
            inner.put(key, "1");
            inner.rollback_to(savepoint);
        }
    }

    /// Runs a statement that fails and hides its error.
    pub(crate) const fn doom(&mut self) {
        self.doomed = true;
    }

    /// Runs a statement for so long.
    pub(crate) async fn run(&mut self, duration: Duration) {
        self.unread = true;
        tokio::time::sleep(duration).await;
        self.unread = false;
    }

    /// Ends the transaction behind the store's back.
    pub(crate) async fn end(&mut self, commit: bool) -> Result<(), StoreError> {
        match self.inner.take() {
            Some(inner) if commit => self.store.inner.commit(inner).await,
            _ => Ok(()),
        }
    }

    pub(crate) async fn commit(mut self) -> Result<(), StoreError> {
        let fault = self.store.fault;
        let Some(inner) = self.inner.take() else {
            if fault.is(Fault::EscapeUnseen) {
                return Ok(());
            }
            let claim = match self.store.inner.claim(&self.event, Duration::ZERO).await {
                Ok(Claim::Duplicate(_)) => ClaimFate::Durable,
                Ok(Claim::Fresh(_)) => ClaimFate::Absent,
                Err(_) => ClaimFate::Unknown,
            };
            return Err(StoreError::new(
                StoreErrorKind::TransactionEnded { claim },
                "",
            ));
        };
        if self.doomed {
            drop(inner);
            return if fault.is(Fault::DoomedCommitted) {
                Ok(())
            } else {
                Err(StoreError::new(StoreErrorKind::TransactionDoomed, ""))
            };
        }
        if self.unread {
            drop(inner);
            return if fault.is(Fault::StaleReply) {
                Ok(())
            } else {
                Err(StoreError::new(
                    StoreErrorKind::CommitUnknown,
                    "the replies are out of step",
                ))
            };
        }
        if fault.is(Fault::CommitNotAwaited) {
            let store = self.store.inner.clone();
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(50)).await;
                store.commit(inner).await
            });
            return Ok(());
        }
        self.store.inner.commit(inner).await?;
        if fault.is(Fault::SelectThenInsert) {
            let key = (self.event.source().clone(), self.event.id().clone());
            self.store
                .known
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(key);
        }
        Ok(())
    }

    pub(crate) async fn rollback(mut self) -> Result<(), StoreError> {
        let Some(mut inner) = self.inner.take() else {
            return Ok(());
        };
        if self.store.fault.is(Fault::ClaimKeptAfterRollback) {
            inner.rollback_to(self.start.clone());
            return self.store.inner.commit(inner).await;
        }
        Ok(())
    }
}

impl Drop for FaultyTx {
    fn drop(&mut self) {
        if let Some(inner) = self.inner.take()
            && self.store.fault.is(Fault::NoRollbackOnDrop)
        {
            std::mem::forget(inner);
        }
    }
}
