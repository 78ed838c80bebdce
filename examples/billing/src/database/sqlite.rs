//! SQLite: one file, nothing to install.

use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use onceonly::Event;
use onceonly_sqlite::rusqlite::{self, Connection, Row};
use onceonly_sqlite::{SqliteStore, SqliteTx};
use tokio::task::spawn_blocking;

use super::{Database, Failure};
use crate::delivery::{Credit, DeadLetter, Entry};

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS ledger (
        id INTEGER PRIMARY KEY, account TEXT NOT NULL, amount INTEGER NOT NULL,
        source TEXT NOT NULL, event_id TEXT NOT NULL
    ) STRICT;
    CREATE TABLE IF NOT EXISTS dead_letters (
        source TEXT NOT NULL, event_id TEXT NOT NULL, event_type TEXT, body TEXT NOT NULL,
        error TEXT NOT NULL, attempts INTEGER NOT NULL, PRIMARY KEY (source, event_id)
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
    pub async fn open(path: &str) -> Result<Self, Failure> {
        Ok(Self {
            store: SqliteStore::open(path).await?,
            path: path.into(),
        })
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

    async fn credit(tx: &mut SqliteTx, event: &Event, credit: &Credit) -> Result<(), Failure> {
        tx.execute(
            "INSERT INTO ledger (account, amount, source, event_id) VALUES (?1, ?2, ?3, ?4)",
            (
                &credit.account,
                credit.amount,
                event.source().as_str(),
                event.id().as_str(),
            ),
        )?;
        Ok(())
    }

    async fn entries(&self) -> Result<Vec<Entry>, Failure> {
        self.run(|connection| {
            let sql = "SELECT account, amount, source, event_id FROM ledger ORDER BY id";
            connection.prepare(sql)?.query_map((), entry)?.collect()
        })
        .await
    }

    async fn bury(&self, letter: &DeadLetter) -> Result<(), Failure> {
        let letter = letter.clone();
        self.run(move |connection| {
            let sql = "INSERT INTO dead_letters VALUES (?1, ?2, ?3, ?4, ?5, 1)
                       ON CONFLICT (source, event_id)
                       DO UPDATE SET attempts = attempts + 1, error = excluded.error";
            let DeadLetter {
                source,
                event_id,
                event_type,
                body,
                error,
                ..
            } = letter;
            connection
                .execute(sql, (source, event_id, event_type, body, error))
                .map(drop)
        })
        .await
    }

    async fn dead_letters(&self) -> Result<Vec<DeadLetter>, Failure> {
        self.run(|connection| {
            let sql = "SELECT source, event_id, event_type, body, error, attempts
                       FROM dead_letters ORDER BY source, event_id";
            connection.prepare(sql)?.query_map((), letter)?.collect()
        })
        .await
    }

    async fn remove_dead_letter(&self, source: &str, event_id: &str) -> Result<(), Failure> {
        let key = (source.to_owned(), event_id.to_owned());
        self.run(move |connection| {
            let sql = "DELETE FROM dead_letters WHERE source = ?1 AND event_id = ?2";
            connection.execute(sql, key).map(drop)
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
        body: row.get(3)?,
        error: row.get(4)?,
        attempts: row.get(5)?,
    })
}
