//! PostgreSQL.

use async_trait::async_trait;
use onceonly::{Event, StoreError};
use onceonly_postgres::tokio_postgres::Row;
use onceonly_postgres::{PostgresStore, PostgresTx};

use super::{Database, Entry};
use crate::dead_letters::{DeadLetter, REPLAY_BATCH, REPLAY_DAYS};
use crate::delivery::Credit;
use crate::failure::Failure;

/// One transaction with a lock: two instances that start at once would both create a table, and one
/// of them would fail.
const TABLES: &str = "
    BEGIN;
    SELECT pg_advisory_xact_lock(hashtext('billing tables'));
    CREATE TABLE IF NOT EXISTS ledger (
        id bigserial PRIMARY KEY, account text NOT NULL, amount bigint NOT NULL,
        source text NOT NULL, event_id text NOT NULL
    );
    CREATE TABLE IF NOT EXISTS dead_letters (
        source text NOT NULL, event_id text NOT NULL, event_type text,
        headers text NOT NULL, body bytea NOT NULL, error text NOT NULL,
        attempts bigint NOT NULL DEFAULT 1, failed_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (source, event_id)
    );
    COMMIT;
";

/// A PostgreSQL database.
#[derive(Debug)]
pub struct Postgres {
    store: PostgresStore,
}

impl Postgres {
    /// Connects.
    ///
    /// # Errors
    ///
    /// When the URL is no URL or the server can't be reached.
    pub async fn connect(url: &str) -> Result<Self, Failure> {
        Ok(Self::new(PostgresStore::connect(url).await?))
    }

    /// On a store whose pool billing's own tables share.
    #[must_use]
    pub const fn new(store: PostgresStore) -> Self {
        Self { store }
    }
}

#[async_trait]
impl Database for Postgres {
    type Store = PostgresStore;

    fn store(&self) -> PostgresStore {
        self.store.clone()
    }

    async fn migrate(&self) -> Result<(), Failure> {
        self.store.migrate().await?;
        Ok(self.store.pool().get().await?.batch_execute(TABLES).await?)
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.store.check().await
    }

    async fn credit(tx: &mut PostgresTx, event: &Event, credit: &Credit) -> Result<(), Failure> {
        let sql = "INSERT INTO ledger (account, amount, source, event_id) VALUES ($1, $2, $3, $4)";
        let (source, id) = (event.source().as_str(), event.id().as_str());
        tx.execute(sql, &[&credit.account, &credit.amount, &source, &id])
            .await?;
        Ok(())
    }

    async fn entries(&self) -> Result<Vec<Entry>, Failure> {
        let sql = "SELECT account, amount, source, event_id FROM ledger ORDER BY id";
        let rows = self.store.pool().get().await?.query(sql, &[]).await?;
        rows.iter().map(entry).collect()
    }

    async fn keep_dead_letter(&self, letter: &DeadLetter) -> Result<(), Failure> {
        let sql = "INSERT INTO dead_letters (source, event_id, event_type, headers, body, error)
                   VALUES ($1, $2, $3, $4, $5, $6)
                   ON CONFLICT (source, event_id) DO UPDATE SET
                   attempts = dead_letters.attempts + 1,
                   error = excluded.error, failed_at = excluded.failed_at";
        let client = self.store.pool().get().await?;
        let DeadLetter {
            source,
            event_id,
            event_type,
            headers,
            body,
            error,
            ..
        } = letter;
        client
            .execute(sql, &[source, event_id, event_type, headers, body, error])
            .await?;
        Ok(())
    }

    async fn dead_letters(&self) -> Result<Vec<DeadLetter>, Failure> {
        let sql = "SELECT source, event_id, event_type, headers, body, error, attempts
                   FROM dead_letters WHERE failed_at > now() - make_interval(days => $1)
                   ORDER BY failed_at LIMIT $2";
        let client = self.store.pool().get().await?;
        let rows = client.query(sql, &[&REPLAY_DAYS, &REPLAY_BATCH]).await?;
        rows.iter().map(letter).collect()
    }

    async fn remove_dead_letter(&self, event: &Event) -> Result<(), Failure> {
        let sql = "DELETE FROM dead_letters WHERE source = $1 AND event_id = $2";
        let (source, id) = (event.source().as_str(), event.id().as_str());
        let client = self.store.pool().get().await?;
        client.execute(sql, &[&source, &id]).await?;
        Ok(())
    }
}

fn entry(row: &Row) -> Result<Entry, Failure> {
    let credit = Credit {
        account: row.try_get(0)?,
        amount: row.try_get(1)?,
    };
    Ok(Entry {
        credit,
        source: row.try_get(2)?,
        event_id: row.try_get(3)?,
    })
}

fn letter(row: &Row) -> Result<DeadLetter, Failure> {
    Ok(DeadLetter {
        source: row.try_get(0)?,
        event_id: row.try_get(1)?,
        event_type: row.try_get(2)?,
        headers: row.try_get(3)?,
        body: row.try_get(4)?,
        error: row.try_get(5)?,
        attempts: row.try_get(6)?,
    })
}
