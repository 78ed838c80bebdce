//! A world is a file in a folder of its own; each store opens it anew, as another process would.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use onceonly::{ClaimFate, Event};
use onceonly_conformance::{Capabilities, Escape, Harness, HarnessError, StoreOptions};
use onceonly_redb::{PROCESSED_EVENTS, RedbStore, RedbTx};
use redb::{
    Builder, ConcurrencyMode, Database, DatabaseError, MultimapTableDefinition, ReadableDatabase,
    ReadableTable, TableDefinition, TransactionError, WriteTransaction,
};
use tempfile::TempDir;

/// An account and the random numbers of its rows.
const LEDGER: MultimapTableDefinition<&str, u64> = MultimapTableDefinition::new("ledger");
const SCRATCH: TableDefinition<u64, u64> = TableDefinition::new("scratch");
const MOVED: TableDefinition<u64, u64> = TableDefinition::new("moved");

const CLAIM_DELETED: &str = "delete the claim's row";
const CLAIMS_EMPTIED: &str = "delete processed_events";
const CLAIMS_MOVED: &str = "rename processed_events";
const CLAIMS_REPLACED: &str = "replace processed_events by a table of other types";

const OTHER_TYPES: &str = "processed_events has other types";
const MULTIMAP: &str = "processed_events is a multimap";

pub(crate) struct RedbHarness {
    folder: TempDir,
    outside: Database,
    stores: Mutex<Vec<RedbStore>>,
}

fn open(folder: &Path) -> Result<Database, DatabaseError> {
    Builder::new()
        .set_concurrency_mode(ConcurrencyMode::MultiWriter)
        .set_cache_size(1 << 20)
        .create(folder.join("world.redb"))
}

impl RedbHarness {
    async fn write(&self) -> Result<WriteTransaction, HarnessError> {
        loop {
            match self.outside.try_begin_write() {
                Err(TransactionError::WouldBlock) => {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                begun => return Ok(begun?),
            }
        }
    }
}

#[async_trait]
impl Harness for RedbHarness {
    type Store = RedbStore;

    fn capabilities() -> Capabilities {
        let mut capabilities = Capabilities::all();
        capabilities.concurrent_keys = false; // one writer at a time
        capabilities.savepoints = false; // redb makes them only before a table is opened
        capabilities.slow_statement = false; // statements block the thread, no future is in flight
        capabilities.conflicts = false; // one writer has nothing to conflict with
        capabilities.commit_conflicts = false; // likewise
        capabilities.deferred_constraints = false; // there are no constraints
        capabilities.network = false; // embedded
        capabilities.clock = false; // redb has none, the machine's is taken
        capabilities.migrations = false; // the first claim makes the table
        capabilities.restart = false; // left out: it takes a process of its own to kill
        capabilities
    }

    async fn setup() -> Result<Self, HarnessError> {
        let folder = tempfile::tempdir()?;
        let outside = open(folder.path())?;
        let transaction = outside.begin_write()?;
        transaction.open_table(PROCESSED_EVENTS)?;
        transaction.open_multimap_table(LEDGER)?;
        transaction.commit()?;
        Ok(Self {
            folder,
            outside,
            stores: Mutex::default(),
        })
    }

    async fn store(&self, options: &StoreOptions) -> Result<RedbStore, HarnessError> {
        let database = Arc::new(open(self.folder.path())?);
        let store = RedbStore::new(database).with_acquire_timeout(options.acquire_timeout);
        self.stores.lock().unwrap().push(store.clone());
        Ok(store)
    }

    async fn effect(&self, tx: &mut RedbTx, account: &str) -> Result<(), HarnessError> {
        let mut ledger = tx.open_multimap_table(LEDGER)?;
        ledger.insert(account, rand::random::<u64>())?;
        Ok(())
    }

    async fn effects(&self, account: &str) -> Result<u64, HarnessError> {
        use redb::ReadableMultimapTable;
        let ledger = self.outside.begin_read()?.open_multimap_table(LEDGER)?;
        let rows = ledger.get(account)?;
        Ok(rows.len())
    }

    async fn claims(&self, event: &Event) -> Result<u64, HarnessError> {
        let claims = self.outside.begin_read()?.open_table(PROCESSED_EVENTS)?;
        let row = claims.get((event.source().as_str(), event.id().as_str()))?;
        Ok(row.is_some().into())
    }

    async fn age(&self, event: &Event, by: Duration) -> Result<(), HarnessError> {
        let by = u64::try_from(by.as_micros())?;
        let key = (event.source().as_str(), event.id().as_str());
        let transaction = self.write().await?;
        let mut claims = transaction.open_table(PROCESSED_EVENTS)?;
        if let Some(mut row) = claims.get_mut(key)? {
            let old = row.value();
            let (event_type, token) = (old.0.map(str::to_owned), *old.2);
            let received_at = old.1.saturating_sub(by);
            row.insert((event_type.as_deref(), received_at, &token))?;
        }
        drop(claims);
        transaction.commit()?;
        Ok(())
    }

    async fn waiting(&self) -> Result<u32, HarnessError> {
        let stores = self.stores.lock().unwrap();
        let waiting: usize = stores.iter().map(RedbStore::waiting).sum();
        Ok(u32::try_from(waiting)?)
    }

    /// An open database is what a store has in place of connections.
    async fn connections(&self) -> Result<u32, HarnessError> {
        Ok(u32::try_from(self.stores.lock().unwrap().len())?)
    }

    async fn doom(&self, tx: &mut RedbTx) -> Result<(), HarnessError> {
        let mut scratch = tx.open_table(SCRATCH)?;
        scratch.insert(1, 1)?;
        let panicking = AssertUnwindSafe(|| scratch.retain(|_, _| resume_unwind(Box::new(()))));
        assert!(catch_unwind(panicking).is_err());
        Ok(())
    }

    fn escapes() -> &'static [Escape] {
        const fn absent(name: &'static str) -> Escape {
            Escape {
                name,
                claim: ClaimFate::Absent,
            }
        }
        const {
            &[
                absent(CLAIM_DELETED),
                absent(CLAIMS_EMPTIED),
                absent(CLAIMS_MOVED),
                absent(CLAIMS_REPLACED),
            ]
        }
    }

    async fn escape(&self, tx: &mut RedbTx, escape: &Escape) -> Result<(), HarnessError> {
        match escape.name {
            CLAIM_DELETED => tx.open_table(PROCESSED_EVENTS)?.retain(|_, _| false)?,
            CLAIMS_EMPTIED => drop(tx.delete_table(PROCESSED_EVENTS)?),
            CLAIMS_MOVED => tx.rename_table(PROCESSED_EVENTS, MOVED)?,
            CLAIMS_REPLACED => {
                tx.delete_table(PROCESSED_EVENTS)?;
                tx.open_table(SCRATCH)?;
                tx.rename_table(SCRATCH, PROCESSED_EVENTS)?;
            }
            unknown => return Err(unknown.into()),
        }
        Ok(())
    }

    fn spoils() -> &'static [&'static str] {
        &[OTHER_TYPES, MULTIMAP]
    }

    async fn spoil(&self, spoil: &str) -> Result<(), HarnessError> {
        const MULTIMAP_CLAIMS: MultimapTableDefinition<u64, u64> =
            MultimapTableDefinition::new("processed_events");
        let transaction = self.write().await?;
        transaction.delete_table(PROCESSED_EVENTS)?;
        match spoil {
            OTHER_TYPES => {
                transaction.open_table(SCRATCH)?;
                transaction.rename_table(SCRATCH, PROCESSED_EVENTS)?;
            }
            MULTIMAP => drop(transaction.open_multimap_table(MULTIMAP_CLAIMS)?),
            unknown => return Err(unknown.into()),
        }
        transaction.commit()?;
        Ok(())
    }
}
