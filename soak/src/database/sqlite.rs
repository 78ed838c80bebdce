//! SQLite.

use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use onceonly_sqlite::{SqliteConfig, SqliteStore, SqliteTx};
use rusqlite::Connection;
use tokio::task::spawn_blocking;

use super::{Database, Effect};
use crate::Failure;
use crate::evidence::{CLAIMS, Evidence, LEDGER};

/// A file.
pub(crate) struct Sqlite {
    file: PathBuf,
}

impl Sqlite {
    pub(crate) const fn new(file: PathBuf) -> Self {
        Self { file }
    }

    async fn outside<T: Send + 'static>(
        &self,
        work: impl FnOnce(Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let file = self.file.clone();
        spawn_blocking(move || work(open(&file)?)).await?
    }
}

fn open(file: &Path) -> Result<Connection, Failure> {
    let connection = Connection::open(file)?;
    connection.busy_timeout(Duration::from_secs(60))?;
    Ok(connection)
}

fn insert(connection: &Connection, row: (i64, i64)) -> Result<(), Failure> {
    let sql = format!("INSERT INTO {LEDGER} (event, delivery) VALUES (?1, ?2)");
    connection.prepare_cached(&sql)?.execute(row)?;
    Ok(())
}

#[async_trait]
impl Database for Sqlite {
    type Store = SqliteStore;

    async fn prepare(&self) -> Result<(), Failure> {
        self.outside(|connection| {
            connection.execute_batch(&format!(
                "DROP TABLE IF EXISTS {LEDGER};
                 DROP TABLE IF EXISTS {CLAIMS};
                 DROP TABLE IF EXISTS {CLAIMS}_migrations;
                 CREATE TABLE {LEDGER} (event INTEGER NOT NULL, delivery INTEGER NOT NULL);"
            ))?;
            Ok(())
        })
        .await
    }

    async fn store(&self) -> Result<SqliteStore, Failure> {
        let store = SqliteConfig::new(&self.file).table(CLAIMS).open().await?;
        store.migrate().await?;
        Ok(store)
    }

    /// Half of them on the thread of the delivery, half on a blocking one.
    async fn effect(tx: &mut SqliteTx, effect: Effect) -> Result<(), Failure> {
        let row = effect.row()?;
        if effect.delivery.is_multiple_of(2) {
            insert(tx, row)
        } else {
            tx.run(move |connection| insert(connection, row)).await?
        }
    }

    async fn slow(tx: &mut SqliteTx, duration: Duration) -> Result<(), Failure> {
        let counting = tx.run(move |connection| {
            // About ten million rows a second.
            let rows = duration.as_micros() as i64 * 10;
            let sql = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT ?1)
                       SELECT count(*) FROM n";
            connection.query_row(sql, [rows], |row| row.get::<_, i64>(0))
        });
        counting.await??;
        Ok(())
    }

    async fn effect_outside(&self, effect: Effect) -> Result<(), Failure> {
        let row = effect.row()?;
        self.outside(move |connection| insert(&connection, row))
            .await
    }

    async fn kill_one(&self) -> Result<(), Failure> {
        Err("SQLite has no sessions: leave --kill-every out".into())
    }

    async fn evidence(&self) -> Result<Evidence, Failure> {
        self.outside(|connection| {
            let effects = connection
                .prepare(&format!("SELECT event, delivery FROM {LEDGER}"))?
                .query_map((), |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect::<Result<Vec<_>, _>>()?;
            let claims = connection
                .prepare(&format!("SELECT source, event_id FROM {CLAIMS}"))?
                .query_map((), |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect::<Result<Vec<_>, _>>()?;
            Evidence::of(effects, claims)
        })
        .await
    }
}
