//! MySQL and MariaDB.

use async_trait::async_trait;
use mysql_async::prelude::Queryable;

use onceonly::{Event, StoreError};
use onceonly_mysql::{MySqlStore, MySqlTx};

use super::{Database, Entry};
use crate::dead_letters::{DeadLetter, REPLAY_BATCH, REPLAY_DAYS};
use crate::delivery::Credit;
use crate::failure::Failure;

const TABLES: [&str; 2] = [
    "CREATE TABLE IF NOT EXISTS ledger (
         id BIGINT AUTO_INCREMENT PRIMARY KEY,
         account VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
         amount BIGINT NOT NULL,
         source VARBINARY(255) NOT NULL, event_id VARBINARY(255) NOT NULL
     ) ENGINE = InnoDB",
    "CREATE TABLE IF NOT EXISTS dead_letters (
         source VARBINARY(255) NOT NULL, event_id VARBINARY(255) NOT NULL, event_type VARBINARY(255),
         headers LONGTEXT CHARACTER SET utf8mb4 NOT NULL, body LONGBLOB NOT NULL,
         error TEXT CHARACTER SET utf8mb4 NOT NULL, attempts BIGINT NOT NULL DEFAULT 1,
         failed_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
         PRIMARY KEY (source, event_id)
     ) ENGINE = InnoDB",
];

/// A MySQL or MariaDB database.
#[derive(Debug)]
pub struct MySql {
    store: MySqlStore,
}

impl MySql {
    /// Connects, with a pool that claims and billing's own tables share.
    ///
    /// # Errors
    ///
    /// When the URL is no URL or the server can't be reached.
    pub async fn connect(url: &str) -> Result<Self, Failure> {
        Ok(Self {
            store: MySqlStore::connect(url).await?,
        })
    }
}

#[async_trait]
impl Database for MySql {
    type Store = MySqlStore;

    fn store(&self) -> MySqlStore {
        self.store.clone()
    }

    async fn migrate(&self) -> Result<(), Failure> {
        self.store.migrate().await?;
        let mut conn = self.store.pool().get_conn().await?;
        for table in TABLES {
            conn.query_drop(table).await?;
        }
        Ok(())
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.store.check().await
    }

    async fn credit(tx: &mut MySqlTx, event: &Event, credit: &Credit) -> Result<(), Failure> {
        let sql = "INSERT INTO ledger (account, amount, source, event_id) VALUES (?, ?, ?, ?)";
        let (source, id) = (event.source().as_str(), event.id().as_str());
        let values = (&credit.account, credit.amount, source, id);
        Ok(tx.exec_drop(sql, values).await?)
    }

    async fn entries(&self) -> Result<Vec<Entry>, Failure> {
        let sql = "SELECT account, amount, source, event_id FROM ledger ORDER BY id";
        let row = |(account, amount, source, event_id)| Entry {
            credit: Credit { account, amount },
            source,
            event_id,
        };
        Ok(self
            .store
            .pool()
            .get_conn()
            .await?
            .query_map(sql, row)
            .await?)
    }

    async fn keep_dead_letter(&self, letter: &DeadLetter) -> Result<(), Failure> {
        let sql = "INSERT INTO dead_letters (source, event_id, event_type, headers, body, error)
                   VALUES (?, ?, ?, ?, ?, ?)
                   ON DUPLICATE KEY UPDATE attempts = attempts + 1,
                   error = VALUES(error), failed_at = CURRENT_TIMESTAMP";
        let DeadLetter {
            source,
            event_id,
            event_type,
            headers,
            body,
            error,
            ..
        } = letter;
        let values = (source, event_id, event_type, headers, body, error);
        Ok(self
            .store
            .pool()
            .get_conn()
            .await?
            .exec_drop(sql, values)
            .await?)
    }

    async fn dead_letters(&self) -> Result<Vec<DeadLetter>, Failure> {
        let sql = "SELECT source, event_id, event_type, headers, body, error, attempts
                   FROM dead_letters WHERE failed_at > CURRENT_TIMESTAMP - INTERVAL ? DAY
                   ORDER BY failed_at LIMIT ?";
        let row = |(source, event_id, event_type, headers, body, error, attempts)| DeadLetter {
            source,
            event_id,
            event_type,
            headers,
            body,
            error,
            attempts,
        };
        let mut conn = self.store.pool().get_conn().await?;
        Ok(conn.exec_map(sql, (REPLAY_DAYS, REPLAY_BATCH), row).await?)
    }

    async fn remove_dead_letter(&self, event: &Event) -> Result<(), Failure> {
        let sql = "DELETE FROM dead_letters WHERE source = ? AND event_id = ?";
        let key = (event.source().as_str(), event.id().as_str());
        Ok(self
            .store
            .pool()
            .get_conn()
            .await?
            .exec_drop(sql, key)
            .await?)
    }
}
