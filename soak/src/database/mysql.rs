//! MySQL and MariaDB.

use std::time::Duration;

use async_trait::async_trait;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, OptsBuilder};
use onceonly_mysql::{MySqlConfig, MySqlStore, MySqlTx};
use tokio::sync::OnceCell;

use super::{CONNECTIONS, Database, Effect};
use crate::Failure;
use crate::evidence::{CLAIMS, Evidence, LEDGER};

/// A server, named by its URL.
pub(crate) struct MySql {
    opts: Opts,
    /// Holds what slow statements of MariaDB wait for. Not SLEEP: sessions of MariaDB 10.11 that are
    /// killed in it pile up for seconds (measured), and with them the claims that they hold.
    holder: OnceCell<Conn>,
}

/// Nobody gets this named lock; to wait for it takes as long as one says.
const HELD: &str = "CONCAT('soak.', DATABASE())";

impl MySql {
    /// By TCP, as a service would reach it: the driver prefers the server's socket.
    pub(crate) fn new(url: &str) -> Result<Self, Failure> {
        let opts = OptsBuilder::from_opts(Opts::from_url(url)?).prefer_socket(false);
        Ok(Self {
            opts: opts.into(),
            holder: OnceCell::new(),
        })
    }

    async fn outside(&self) -> Result<Conn, Failure> {
        Ok(Conn::new(self.opts.clone()).await?)
    }
}

async fn insert(connection: &mut Conn, effect: Effect) -> Result<(), Failure> {
    let sql = format!("INSERT INTO {LEDGER} (event, delivery) VALUES (?, ?)");
    Ok(connection.exec_drop(sql, effect.row()?).await?)
}

#[async_trait]
impl Database for MySql {
    type Store = MySqlStore;

    async fn prepare(&self) -> Result<(), Failure> {
        let mut outside = self.outside().await?;
        for statement in [
            format!("DROP VIEW IF EXISTS {CLAIMS}_text"),
            format!("DROP TABLE IF EXISTS {LEDGER}, {CLAIMS}, {CLAIMS}_migrations"),
            format!(
                "CREATE TABLE {LEDGER} (event BIGINT NOT NULL, delivery BIGINT NOT NULL)
                 ENGINE = InnoDB"
            ),
        ] {
            outside.query_drop(statement).await?;
        }
        outside
            .query_drop(format!("DO GET_LOCK({HELD}, 0)"))
            .await?;
        self.holder
            .set(outside)
            .map_err(|_| "prepared twice".into())
    }

    async fn store(&self) -> Result<MySqlStore, Failure> {
        let store = MySqlConfig::new()
            .table(CLAIMS)
            .max_connections(CONNECTIONS)
            .from_opts(self.opts.clone())?;
        store.migrate().await?;
        Ok(store)
    }

    async fn effect(tx: &mut MySqlTx, effect: Effect) -> Result<(), Failure> {
        insert(tx, effect).await
    }

    async fn slow(tx: &mut MySqlTx, duration: Duration) -> Result<(), Failure> {
        // MySQL rounds the wait for a lock to whole seconds.
        let seconds = duration.as_secs_f64();
        let sql = format!(
            "DO IF(VERSION() LIKE '%MariaDB%', GET_LOCK({HELD}, {seconds}), SLEEP({seconds}))"
        );
        Ok(tx.query_drop(sql).await?)
    }

    async fn effect_outside(&self, effect: Effect) -> Result<(), Failure> {
        let mut outside = self.outside().await?;
        insert(&mut outside, effect).await?;
        Ok(outside.disconnect().await?)
    }

    async fn kill_one(&self) -> Result<(), Failure> {
        // Not from innodb_trx: it shows old news to who reads it more than ten times a second.
        let sql = format!(
            "SELECT id FROM information_schema.processlist
             WHERE db = DATABASE() AND id <> CONNECTION_ID()
             AND id <> COALESCE(IS_USED_LOCK({HELD}), 0)
             ORDER BY command = 'Sleep', RAND() LIMIT 1"
        );
        let mut outside = self.outside().await?;
        if let Some(session) = outside.query_first::<u64, _>(sql).await? {
            // It may have ended by itself.
            let _gone = outside.query_drop(format!("KILL {session}")).await;
        }
        Ok(outside.disconnect().await?)
    }

    async fn evidence(&self) -> Result<Evidence, Failure> {
        let mut outside = self.outside().await?;
        let effects: Vec<(i64, i64)> = outside
            .query(format!("SELECT event, delivery FROM {LEDGER}"))
            .await?;
        let claims: Vec<(String, String)> = outside
            .query(format!("SELECT source, event_id FROM {CLAIMS}"))
            .await?;
        outside.disconnect().await?;
        Evidence::of(effects, claims)
    }
}
