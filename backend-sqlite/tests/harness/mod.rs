//! What the conformance suite needs to know of SQLite. A world is a file of its own.

mod escapes;
mod place;
mod spoils;

use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use onceonly::{Event, StoreError};
use onceonly_conformance::{Capabilities, Escape, Harness, HarnessError, StoreOptions};
use onceonly_sqlite::rusqlite::{self, Connection, ErrorCode};
use onceonly_sqlite::{Journal, SqliteConfig, SqliteStore, SqliteTx};
use tempfile::TempDir;

pub(crate) use place::{File, Memory, Place, RollbackJournal};

/// Tables beside the claims: what `apply` writes, and what it can fail on.
const TABLES: &str = "
    CREATE TABLE ledger (account TEXT NOT NULL) STRICT;
    CREATE TABLE accounts (id TEXT PRIMARY KEY) STRICT;
    CREATE TABLE debts (account TEXT REFERENCES accounts DEFERRABLE INITIALLY DEFERRED) STRICT;
    CREATE TABLE counters (id INTEGER PRIMARY KEY) STRICT;
    INSERT INTO counters VALUES (1);
    CREATE TRIGGER keep_counters BEFORE DELETE ON counters
        BEGIN SELECT RAISE(ROLLBACK, 'counters stay'); END;
";

pub(crate) struct SqliteHarness<P> {
    path: PathBuf,
    outside: Mutex<Connection>,
    stores: Mutex<Vec<SqliteStore>>,
    /// A pragma that every later store's connections set.
    setting: Mutex<Option<&'static str>>,
    memory: Option<SqliteStore>,
    directory: Option<TempDir>,
    place: PhantomData<P>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<P: Place> SqliteHarness<P> {
    fn world(
        path: PathBuf,
        directory: Option<TempDir>,
        memory: Option<SqliteStore>,
    ) -> Result<Self, HarnessError> {
        let outside = Connection::open(&path)?;
        if P::JOURNAL == Journal::Wal {
            outside.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
        }
        outside.execute_batch(TABLES)?;
        outside.busy_timeout(Duration::ZERO)?;
        Ok(Self {
            path,
            outside: Mutex::new(outside),
            stores: Mutex::new(Vec::new()),
            setting: Mutex::new(None),
            memory,
            directory,
            place: PhantomData,
        })
    }

    /// Asks from outside again for as long as a claim or a COMMIT has the file locked.
    async fn patiently<T>(
        &self,
        ask: impl Fn(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, HarnessError> {
        loop {
            let answer = ask(&self.outside());
            match answer {
                Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
                answer => return Ok(answer?),
            }
        }
    }

    fn outside(&self) -> MutexGuard<'_, Connection> {
        lock(&self.outside)
    }
}

#[async_trait]
impl<P: Place> Harness for SqliteHarness<P> {
    type Store = SqliteStore;

    fn capabilities() -> Capabilities {
        let mut capabilities = Capabilities::all();
        // One writer per file, which has its lock before apply runs; no server.
        capabilities.concurrent_keys = false;
        capabilities.conflicts = false;
        capabilities.commit_conflicts = false;
        capabilities.network = false;
        // SQLite's clock is the machine's.
        capabilities.clock = false;
        // A failed statement leaves the transaction alive.
        capabilities.dooming = false;
        // The store is in this process; tests/processes.rs kills others.
        capabilities.restart = false;
        // Counted in /proc.
        capabilities.connections = cfg!(target_os = "linux");
        P::limit(&mut capabilities);
        capabilities
    }

    async fn setup() -> Result<Self, HarnessError> {
        if P::IN_MEMORY {
            let store = SqliteStore::in_memory().await?;
            return Self::world(store.path().to_owned(), None, Some(store));
        }
        let world = Self::setup_empty().await?;
        world
            .store(&StoreOptions::default())
            .await?
            .migrate()
            .await?;
        Ok(world)
    }

    async fn store(&self, options: &StoreOptions) -> Result<SqliteStore, HarnessError> {
        let store = match &self.memory {
            Some(store) => store.clone(),
            None => {
                let setting = *lock(&self.setting);
                SqliteConfig::new(&self.path)
                    .journal(P::JOURNAL)
                    .acquire_timeout(options.acquire_timeout)
                    .on_open(move |connection| {
                        connection.pragma_update(None, "foreign_keys", true)?;
                        connection.execute_batch(setting.unwrap_or_default())
                    })
                    .open()
                    .await?
            }
        };
        lock(&self.stores).push(store.clone());
        Ok(store)
    }

    async fn effect(&self, tx: &mut SqliteTx, account: &str) -> Result<(), HarnessError> {
        tx.execute("INSERT INTO ledger VALUES (?1)", [account])?;
        Ok(())
    }

    async fn effects(&self, account: &str) -> Result<u64, HarnessError> {
        let sql = "SELECT count(*) FROM ledger WHERE account = ?1";
        let count = |outside: &Connection| outside.query_row(sql, [account], |row| row.get(0));
        let count: i64 = self.patiently(count).await?;
        Ok(count.try_into()?)
    }

    async fn claims(&self, event: &Event) -> Result<u64, HarnessError> {
        let sql = "SELECT count(*) FROM processed_events WHERE source = ?1 AND event_id = ?2";
        let key = [event.source().as_str(), event.id().as_str()];
        let count = |outside: &Connection| outside.query_row(sql, key, |row| row.get(0));
        let count: i64 = self.patiently(count).await?;
        Ok(count.try_into()?)
    }

    async fn age(&self, event: &Event, by: Duration) -> Result<(), HarnessError> {
        let micros = i64::try_from(by.as_micros())?;
        let key = (event.source().as_str(), event.id().as_str(), micros);
        let sql = "UPDATE processed_events SET received_at = received_at - ?3
                   WHERE source = ?1 AND event_id = ?2";
        self.patiently(|outside| outside.execute(sql, key)).await?;
        Ok(())
    }

    async fn waiting(&self) -> Result<u32, HarnessError> {
        let stores = lock(&self.stores);
        // In memory all of them are the same one.
        let stores = if P::IN_MEMORY {
            stores.get(..1)
        } else {
            stores.get(..)
        };
        Ok(stores
            .unwrap_or_default()
            .iter()
            .map(SqliteStore::waiting)
            .sum())
    }

    async fn connections(&self) -> Result<u32, HarnessError> {
        let open = std::fs::read_dir("/proc/self/fd")?
            .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
            .filter(|target| *target == self.path)
            .count();
        // One of them is the harness's own.
        Ok(u32::try_from(open)?.saturating_sub(1))
    }

    async fn savepoint(&self, tx: &mut SqliteTx, account: &str) -> Result<(), HarnessError> {
        let savepoint = tx.savepoint()?;
        savepoint.execute("INSERT INTO ledger VALUES (?1)", [account])?;
        let failed = savepoint.execute("INSERT INTO no_such_table VALUES (1)", ());
        savepoint.rollback()?;
        match failed {
            Ok(_) => Err("a statement on no table did not fail".into()),
            Err(_undone) => Ok(()),
        }
    }

    async fn slow_statement(&self, tx: &mut SqliteTx, seconds: u32) -> Result<(), HarnessError> {
        let rows = i64::from(seconds) * 10_000_000;
        let sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT ?1)
                   SELECT count(*) FROM n";
        tx.run(move |connection| connection.query_row(sql, [rows], |_| Ok(())))
            .await??;
        Ok(())
    }

    fn escapes() -> &'static [Escape] {
        escapes::ALL
    }

    async fn escape(&self, tx: &mut SqliteTx, escape: &Escape) -> Result<(), HarnessError> {
        escapes::run(tx, escape)
    }

    async fn refuse_commit(&self, tx: &mut SqliteTx) -> Result<(), HarnessError> {
        tx.pragma_update(None, "foreign_keys", true)?;
        tx.execute("INSERT INTO debts VALUES ('nobody')", ())?;
        Ok(())
    }

    async fn setup_empty() -> Result<Self, HarnessError> {
        let directory = tempfile::tempdir()?;
        let path = directory.path().canonicalize()?.join("world.db");
        Self::world(path, Some(directory), None)
    }

    async fn migrate(&self, store: &SqliteStore) -> Result<(), StoreError> {
        store.migrate().await
    }

    async fn tamper(&self) -> Result<(), HarnessError> {
        let sql = "UPDATE processed_events_migrations SET checksum = 'changed'";
        self.outside().execute(sql, ())?;
        Ok(())
    }

    async fn advance_schema(&self, compatible: bool) -> Result<(), HarnessError> {
        let compatible_with = if compatible { 1 } else { 1_000 };
        let sql = "INSERT INTO processed_events_migrations VALUES (1000, 'future', '', ?1, 0)";
        self.outside().execute(sql, [compatible_with])?;
        Ok(())
    }

    fn spoils() -> &'static [&'static str] {
        spoils::NAMES
    }

    async fn spoil(&self, spoil: &str) -> Result<(), HarnessError> {
        let spoil = spoils::find(spoil).ok_or("no such spoil")?;
        *lock(&self.setting) = spoil.setting;
        Ok(self.outside().execute_batch(&spoil.schema())?)
    }

    async fn teardown(mut self) -> Result<(), HarnessError> {
        lock(&self.stores).clear();
        match self.directory.take() {
            Some(directory) => Ok(directory.close()?),
            None => Ok(()),
        }
    }
}
