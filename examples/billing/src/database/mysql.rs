//! MySQL and MariaDB.

use async_trait::async_trait;
use mysql_async::Pool;
use mysql_async::prelude::Queryable;
use onceonly::Event;
use onceonly_mysql::{MySqlStore, MySqlTx};

use super::{Database, Failure};
use crate::delivery::{Credit, DeadLetter, Entry};

const TABLES: [&str; 2] = [
    "CREATE TABLE IF NOT EXISTS ledger (
         id BIGINT AUTO_INCREMENT PRIMARY KEY, account VARCHAR(255) NOT NULL, amount BIGINT NOT NULL,
         source VARBINARY(255) NOT NULL, event_id VARBINARY(255) NOT NULL
     ) ENGINE = InnoDB",
    "CREATE TABLE IF NOT EXISTS dead_letters (
         source VARBINARY(255) NOT NULL, event_id VARBINARY(255) NOT NULL, event_type VARBINARY(255),
         body LONGTEXT CHARACTER SET utf8mb4 NOT NULL, error TEXT NOT NULL, attempts BIGINT NOT NULL,
         PRIMARY KEY (source, event_id)
     ) ENGINE = InnoDB",
];

/// A MySQL or MariaDB database.
#[derive(Debug)]
pub struct MySql {
    store: MySqlStore,
    pool: Pool,
}

impl MySql {
    /// Connects, with a pool of billing's own that the claims share.
    ///
    /// # Errors
    ///
    /// When the URL is no URL.
    pub async fn connect(url: &str) -> Result<Self, Failure> {
        let pool = Pool::from_url(url)?;
        Ok(Self {
            store: MySqlStore::from_pool(pool.clone()),
            pool,
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
        let mut conn = self.pool.get_conn().await?;
        for table in TABLES {
            conn.query_drop(table).await?;
        }
        Ok(())
    }

    async fn credit(tx: &mut MySqlTx, event: &Event, credit: &Credit) -> Result<(), Failure> {
        let sql = "INSERT INTO ledger (account, amount, source, event_id) VALUES (?, ?, ?, ?)";
        let (source, id) = (event.source().as_str(), event.id().as_str());
        Ok(tx
            .exec_drop(sql, (&credit.account, credit.amount, source, id))
            .await?)
    }

    async fn entries(&self) -> Result<Vec<Entry>, Failure> {
        let sql = "SELECT account, amount, source, event_id FROM ledger ORDER BY id";
        let row = |(account, amount, source, event_id)| Entry {
            credit: Credit { account, amount },
            source,
            event_id,
        };
        Ok(self.pool.get_conn().await?.query_map(sql, row).await?)
    }

    async fn bury(&self, letter: &DeadLetter) -> Result<(), Failure> {
        let sql = "INSERT INTO dead_letters VALUES (?, ?, ?, ?, ?, 1)
                   ON DUPLICATE KEY UPDATE attempts = attempts + 1, error = VALUES(error)";
        let DeadLetter {
            source,
            event_id,
            event_type,
            body,
            error,
            ..
        } = letter;
        let values = (source, event_id, event_type, body, error);
        Ok(self.pool.get_conn().await?.exec_drop(sql, values).await?)
    }

    async fn dead_letters(&self) -> Result<Vec<DeadLetter>, Failure> {
        let sql = "SELECT source, event_id, event_type, body, error, attempts
                   FROM dead_letters ORDER BY source, event_id";
        let row = |(source, event_id, event_type, body, error, attempts)| DeadLetter {
            source,
            event_id,
            event_type,
            body,
            error,
            attempts,
        };
        Ok(self.pool.get_conn().await?.query_map(sql, row).await?)
    }

    async fn remove_dead_letter(&self, source: &str, event_id: &str) -> Result<(), Failure> {
        let sql = "DELETE FROM dead_letters WHERE source = ? AND event_id = ?";
        Ok(self
            .pool
            .get_conn()
            .await?
            .exec_drop(sql, (source, event_id))
            .await?)
    }
}
