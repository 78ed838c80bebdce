//! What the suite needs to know of a store that makes one mistake.

use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use onceonly::{ClaimFate, ClaimRecords, Event};
use onceonly_conformance::{Capabilities, Escape, Harness, HarnessError, StoreOptions};

use crate::{Fault, FaultyStore, FaultyTx};

/// The harness of the [`Fault`] of this number.
#[derive(Debug)]
pub struct FaultyHarness<const FAULT: u8> {
    store: FaultyStore,
}

const COMMIT: Escape = Escape {
    name: "COMMIT",
    claim: ClaimFate::Durable,
};
const ROLLBACK: Escape = Escape {
    name: "ROLLBACK",
    claim: ClaimFate::Absent,
};

fn ledger(account: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("ledger/{account}/{}", COUNT.fetch_add(1, Ordering::Relaxed))
}

#[async_trait]
impl<const FAULT: u8> Harness for FaultyHarness<FAULT> {
    type Store = FaultyStore;

    fn capabilities() -> Capabilities {
        let mut capabilities = Capabilities::minimal();
        capabilities.second_store = true;
        capabilities.savepoints = true;
        capabilities.dooming = true;
        capabilities.slow_statement = true;
        capabilities.escapes = true;
        capabilities
    }

    async fn setup() -> Result<Self, HarnessError> {
        Ok(Self {
            store: FaultyStore::new(Fault::of(FAULT)),
        })
    }

    async fn store(&self, _options: &StoreOptions) -> Result<FaultyStore, HarnessError> {
        Ok(self.store.clone())
    }

    async fn effect(&self, tx: &mut FaultyTx, account: &str) -> Result<(), HarnessError> {
        Ok(tx.put(ledger(account)).await?)
    }

    async fn effects(&self, account: &str) -> Result<u64, HarnessError> {
        let prefix = format!("ledger/{account}/");
        let keys = self.store.inner.keys();
        Ok(keys.iter().filter(|key| key.starts_with(&prefix)).count() as u64)
    }

    async fn claims(&self, event: &Event) -> Result<u64, HarnessError> {
        let event = self.store.stored(event);
        let key = (event.source().clone(), event.id().clone());
        let known = self
            .store
            .known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(&key);
        Ok(u64::from(
            known
                || self
                    .store
                    .inner
                    .is_claimed(event.source(), event.id())
                    .await?,
        ))
    }

    async fn age(&self, event: &Event, by: Duration) -> Result<(), HarnessError> {
        self.store.inner.age(&self.store.stored(event), by);
        Ok(())
    }

    async fn waiting(&self) -> Result<u32, HarnessError> {
        Ok(u32::try_from(self.store.inner.waiting())?)
    }

    async fn savepoint(&self, tx: &mut FaultyTx, account: &str) -> Result<(), HarnessError> {
        tx.put_and_return(ledger(account));
        Ok(())
    }

    async fn slow_statement(&self, tx: &mut FaultyTx, seconds: u32) -> Result<(), HarnessError> {
        tx.run(Duration::from_secs(seconds.into())).await;
        Ok(())
    }

    async fn doom(&self, tx: &mut FaultyTx) -> Result<(), HarnessError> {
        tx.doom();
        Ok(())
    }

    fn escapes() -> &'static [Escape] {
        &[COMMIT, ROLLBACK]
    }

    async fn escape(&self, tx: &mut FaultyTx, escape: &Escape) -> Result<(), HarnessError> {
        Ok(tx.end(*escape == COMMIT).await?)
    }
}
