//! PostgreSQL.

use std::time::Duration;

use async_trait::async_trait;
use onceonly_postgres::{PostgresConfig, PostgresStore, PostgresTx};
use tokio_postgres::{Client, NoTls};

use super::{CONNECTIONS, Database, Effect};
use crate::Failure;
use crate::evidence::{CLAIMS, Evidence, LEDGER};

/// A server, named by its URL.
pub(crate) struct Postgres {
    url: String,
}

impl Postgres {
    pub(crate) const fn new(url: String) -> Self {
        Self { url }
    }

    async fn outside(&self) -> Result<Client, Failure> {
        let (client, connection) = tokio_postgres::connect(&self.url, NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }
}

async fn insert(client: &Client, effect: Effect) -> Result<(), Failure> {
    let (event, delivery) = effect.row()?;
    let sql = format!("INSERT INTO {LEDGER} (event, delivery) VALUES ($1, $2)");
    client.execute(&sql, &[&event, &delivery]).await?;
    Ok(())
}

#[async_trait]
impl Database for Postgres {
    type Store = PostgresStore;

    async fn prepare(&self) -> Result<(), Failure> {
        let outside = self.outside().await?;
        outside
            .batch_execute(&format!(
                "DROP TABLE IF EXISTS {LEDGER}, {CLAIMS}, {CLAIMS}_migrations;
                 CREATE TABLE {LEDGER} (event bigint NOT NULL, delivery bigint NOT NULL);"
            ))
            .await?;
        Ok(())
    }

    async fn store(&self) -> Result<PostgresStore, Failure> {
        let store = PostgresConfig::new()
            .table(CLAIMS)
            .max_connections(CONNECTIONS)
            .connect(&self.url)
            .await?;
        store.migrate().await?;
        Ok(store)
    }

    async fn effect(tx: &mut PostgresTx, effect: Effect) -> Result<(), Failure> {
        insert(tx, effect).await
    }

    async fn slow(tx: &mut PostgresTx, duration: Duration) -> Result<(), Failure> {
        let sql = format!("SELECT pg_sleep({})", duration.as_secs_f64());
        Ok(tx.batch_execute(&sql).await?)
    }

    async fn effect_outside(&self, effect: Effect) -> Result<(), Failure> {
        insert(&self.outside().await?, effect).await
    }

    async fn kill_one(&self) -> Result<(), Failure> {
        let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                   WHERE datname = current_database() AND pid <> pg_backend_pid()
                   AND backend_type = 'client backend' AND state <> 'idle'
                   ORDER BY random() LIMIT 1";
        Ok(self.outside().await?.batch_execute(sql).await?)
    }

    async fn evidence(&self) -> Result<Evidence, Failure> {
        let outside = self.outside().await?;
        let effects = format!("SELECT event, delivery FROM {LEDGER}");
        let claims = format!("SELECT source, event_id FROM {CLAIMS}");
        let effects = outside.query(&effects, &[]).await?;
        let claims = outside.query(&claims, &[]).await?;
        Evidence::of(
            effects.iter().map(|row| (row.get(0), row.get(1))),
            claims.iter().map(|row| (row.get(0), row.get(1))),
        )
    }
}
