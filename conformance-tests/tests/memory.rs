//! The suite against `MemoryStore`, which lives in core and can't depend on the suite.
#![allow(clippy::unwrap_used, reason = "a test states what it expects")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use onceonly::{Claim, ClaimRecords, ClaimStore, Event, MemoryStore, MemoryTx};
use onceonly_conformance::{Capabilities, Harness, HarnessError, StoreOptions};

struct MemoryHarness {
    store: MemoryStore,
}

fn ledger(account: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("ledger/{account}/{}", COUNT.fetch_add(1, Ordering::Relaxed))
}

#[async_trait]
impl Harness for MemoryHarness {
    type Store = MemoryStore;

    fn capabilities() -> Capabilities {
        let mut capabilities = Capabilities::minimal();
        capabilities.second_store = true;
        capabilities.savepoints = true;
        capabilities.commit_conflicts = true;
        capabilities
    }

    async fn setup() -> Result<Self, HarnessError> {
        Ok(Self {
            store: MemoryStore::new(),
        })
    }

    async fn store(&self, _options: &StoreOptions) -> Result<MemoryStore, HarnessError> {
        Ok(self.store.clone())
    }

    async fn effect(&self, tx: &mut MemoryTx, account: &str) -> Result<(), HarnessError> {
        tx.put(ledger(account), "1");
        Ok(())
    }

    async fn effects(&self, account: &str) -> Result<u64, HarnessError> {
        let prefix = format!("ledger/{account}/");
        let keys = self.store.keys();
        Ok(keys.iter().filter(|key| key.starts_with(&prefix)).count() as u64)
    }

    async fn claims(&self, event: &Event) -> Result<u64, HarnessError> {
        Ok(self
            .store
            .is_claimed(event.source(), event.id())
            .await?
            .into())
    }

    async fn age(&self, event: &Event, by: Duration) -> Result<(), HarnessError> {
        self.store.age(event, by);
        Ok(())
    }

    async fn waiting(&self) -> Result<u32, HarnessError> {
        Ok(u32::try_from(self.store.waiting())?)
    }

    async fn savepoint(&self, tx: &mut MemoryTx, account: &str) -> Result<(), HarnessError> {
        let savepoint = tx.savepoint();
        tx.put(ledger(account), "1");
        tx.rollback_to(savepoint);
        Ok(())
    }

    async fn conflict_at_commit(&self, tx: &mut MemoryTx) -> Result<(), HarnessError> {
        tx.put("shared", "here");
        let aside = Event::new("aside", ledger("aside"))?;
        let Claim::Fresh(mut other) = self.store.claim(&aside, Duration::ZERO).await? else {
            return Err("the key was taken".into());
        };
        other.put("shared", "there");
        Ok(self.store.commit(other).await?)
    }
}

onceonly_conformance::suite!(MemoryHarness);
onceonly_conformance::suite_records!(MemoryHarness);
onceonly_conformance::approved_skips!(MemoryHarness, "memory-skips.txt");

#[test]
fn cases_are_the_approved_ones() {
    let mut seen = onceonly_conformance::names::<MemoryHarness>();
    seen.extend(onceonly_conformance::records_names::<MemoryHarness>());
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/cases.txt");
    onceonly_conformance::approve(file, &seen);
}
