//! SQLite: one file, nothing to install.

use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use onceonly::{Event, StoreError};
use onceonly_sqlite::rusqlite::{self, Connection, Row};
use onceonly_sqlite::{SqliteStore, SqliteTx};
use tokio::task::spawn_blocking;

use super::{Database, Entry};
use crate::dead_letters::{DeadLetter, REPLAY_BATCH, REPLAY_DAYS};
use crate::delivery::Credit;
use crate::failure::Failure;

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS ledger (
        id INTEGER PRIMARY KEY, account TEXT NOT NULL, amount INTEGER NOT NULL,
        source TEXT NOT NULL, event_id TEXT NOT NULL
    ) STRICT;
    CREATE TABLE IF NOT EXISTS dead_letters (
        source TEXT NOT NULL, event_id TEXT NOT NULL, event_type TEXT,
        headers TEXT NOT NULL, body BLOB NOT NULL, error TEXT NOT NULL,
        attempts INTEGER NOT NULL DEFAULT 1, failed_at INTEGER NOT NULL DEFAULT (unixepoch()),
        PRIMARY KEY (source, event_id)
    ) STRICT;
";

/// An SQLite file.
#[derive(Debug)]
pub struct Sqlite {
    store: SqliteStore,
    path: PathBuf,
}

impl Sqlite {
    /// Opens the file, and makes it if there is none.
    ///
    /// # Errors
    ///
    /// When it can't be opened.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, Failure> {
        let store = SqliteStore::open(path).await?;
        let path = store.path().to_path_buf();
        Ok(Self { store, path })
    }

    /// Runs statements on a connection of its own, off the async threads.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Failure> {
        let path = self.path.clone();
        let worked = spawn_blocking(move || {
            let connection = Connection::open(path)?;
            connection.busy_timeout(Duration::from_secs(5))?;
            work(&connection)
        });
        Ok(worked.await??)
    }
}

#[async_trait]
impl Database for Sqlite {
    type Store = SqliteStore;

    fn store(&self) -> SqliteStore {
        self.store.clone()
    }

    async fn migrate(&self) -> Result<(), Failure> {
        self.store.migrate().await?;
        self.run(|connection| connection.execute_batch(TABLES))
            .await
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.store.check().await
    }

    async fn credit(tx: &mut SqliteTx, event: &Event, credit: &Credit) -> Result<(), Failure> {
        let sql = "INSERT INTO ledger (account, amount, source, event_id) VALUES (?1, ?2, ?3, ?4)";
        let (source, id) = (event.source().as_str(), event.id().as_str());
        tx.execute(sql, (&credit.account, credit.amount, source, id))?;
        Ok(())
    }

    async fn entries(&self) -> Result<Vec<Entry>, Failure> {
        self.run(|connection| {
            let sql = "SELECT account, amount, source, event_id FROM ledger ORDER BY id";
            connection.prepare(sql)?.query_map((), entry)?.collect()
        })
        .await
    }

    async fn keep_dead_letter(&self, letter: &DeadLetter) -> Result<(), Failure> {
        let letter = letter.clone();
        self.run(move |connection| {
            let sql =
                "INSERT INTO dead_letters (source, event_id, event_type, headers, body, error)
                       VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                       ON CONFLICT (source, event_id) DO UPDATE SET attempts = attempts + 1,
                       error = excluded.error, failed_at = excluded.failed_at";
            let key = (letter.source, letter.event_id, letter.event_type);
            let sent = (letter.headers, letter.body);
            let values = (key.0, key.1, key.2, sent.0, sent.1, letter.error);
            connection.execute(sql, values).map(drop)
        })
        .await
    }

    async fn dead_letters(&self) -> Result<Vec<DeadLetter>, Failure> {
        self.run(|connection| {
            let sql = "SELECT source, event_id, event_type, headers, body, error, attempts
                       FROM dead_letters WHERE failed_at > unixepoch() - ?1 * 86400
                       ORDER BY failed_at LIMIT ?2";
            let mut letters = connection.prepare(sql)?;
            letters
                .query_map((REPLAY_DAYS, REPLAY_BATCH), letter)?
                .collect()
        })
        .await
    }

    async fn remove_dead_letter(&self, event: &Event) -> Result<(), Failure> {
        let (source, id) = (event.source().to_string(), event.id().to_string());
        self.run(move |connection| {
            let sql = "DELETE FROM dead_letters WHERE source = ?1 AND event_id = ?2";
            connection.execute(sql, (source, id)).map(drop)
        })
        .await
    }
}

fn entry(row: &Row<'_>) -> rusqlite::Result<Entry> {
    let credit = Credit {
        account: row.get(0)?,
        amount: row.get(1)?,
    };
    Ok(Entry {
        credit,
        source: row.get(2)?,
        event_id: row.get(3)?,
    })
}

fn letter(row: &Row<'_>) -> rusqlite::Result<DeadLetter> {
    Ok(DeadLetter {
        source: row.get(0)?,
        event_id: row.get(1)?,
        event_type: row.get(2)?,
        headers: row.get(3)?,
        body: row.get(4)?,
        error: row.get(5)?,
        attempts: row.get(6)?,
    })
}
