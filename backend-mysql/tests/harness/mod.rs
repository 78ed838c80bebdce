#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test states what it expects, and each test file uses its part"
)]
//! What the conformance suite needs to know of MySQL and MariaDB. A world is a database of its own.

mod escapes;
mod spoils;

use std::env;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, OptsBuilder};
use onceonly::{Event, StoreError};
use onceonly_conformance::{Capabilities, Escape, Harness, HarnessError, StoreOptions};
use onceonly_mysql::{MySqlConfig, MySqlStore, MySqlTx};
use onceonly_test_servers::MariaDbServer;
use tokio::sync::Mutex;

/// Tables beside the claims: what `apply` writes, and what it can collide with.
const TABLES: [&str; 4] = [
    "CREATE TABLE ledger (id BIGINT AUTO_INCREMENT PRIMARY KEY, account VARCHAR(255) NOT NULL,
     KEY (account)) ENGINE = InnoDB",
    "CREATE TABLE scratch (id INT PRIMARY KEY) ENGINE = InnoDB",
    "CREATE TABLE counters (id INT PRIMARY KEY, n INT NOT NULL) ENGINE = InnoDB",
    "INSERT INTO counters VALUES (1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (6, 0), (7, 0), (8, 0)",
];

/// A database of its own on the server of the test run.
pub(crate) struct MySqlHarness {
    opts: Opts,
    name: String,
    outside: Mutex<Conn>,
    server: Option<Arc<MariaDbServer>>,
}

fn server_url() -> Result<String, HarnessError> {
    env::var("ONCEONLY_MYSQL_URL").map_err(|_| {
        "ONCEONLY_MYSQL_URL is not set: run `cargo xtask test`, which starts a server".into()
    })
}

impl MySqlHarness {
    async fn world(url: &str, server: Option<Arc<MariaDbServer>>) -> Result<Self, HarnessError> {
        // The driver would leave TCP, and with it the suite's proxy, for the server's socket.
        let base: Opts = OptsBuilder::from_opts(Opts::from_url(url)?)
            .prefer_socket(false)
            .into();
        let name = format!("world_{:016x}", rand::random::<u64>());
        let mut admin = Conn::new(base.clone()).await?;
        admin.query_drop(format!("CREATE DATABASE {name}")).await?;
        admin.disconnect().await?;
        let opts: Opts = OptsBuilder::from_opts(base).db_name(Some(&name)).into();
        let mut outside = Conn::new(opts.clone()).await?;
        for table in TABLES {
            outside.query_drop(table).await?;
        }
        Ok(Self {
            opts,
            name,
            outside: Mutex::new(outside),
            server,
        })
    }

    async fn migrated(self) -> Result<Self, HarnessError> {
        self.store(&StoreOptions::with_connections(1))
            .await?
            .migrate()
            .await?;
        Ok(self)
    }

    async fn count(&self, sql: &str, names: Vec<&[u8]>) -> Result<u64, HarnessError> {
        let mut outside = self.outside.lock().await;
        let names: Vec<mysql_async::Value> = names.into_iter().map(Into::into).collect();
        Ok(outside
            .exec_first(sql, names)
            .await?
            .ok_or("count gave no row")?)
    }

    /// Sessions of this world and the statements that they are running.
    async fn at_work(&self) -> Result<Vec<(u64, String)>, HarnessError> {
        let sql = "SELECT id, info FROM information_schema.processlist WHERE db = ?
                   AND (info LIKE 'INSERT %' OR info LIKE 'DELETE %' OR info LIKE 'UPDATE %')";
        let mut outside = self.outside.lock().await;
        Ok(outside.exec(sql, (&self.name,)).await?)
    }

    async fn run(&self, sql: &str) -> Result<(), HarnessError> {
        Ok(self.outside.lock().await.query_drop(sql).await?)
    }

    /// A world's connection that the store never sees.
    pub(crate) async fn connect(&self) -> Result<Conn, HarnessError> {
        Ok(Conn::new(self.opts.clone()).await?)
    }

    /// What a pool of a team's own would be built from.
    pub(crate) fn opts(&self, options: &StoreOptions) -> OptsBuilder {
        let mut opts = OptsBuilder::from_opts(self.opts.clone());
        if let Some(via) = options.via {
            opts = opts
                .ip_or_hostname(via.ip().to_string())
                .tcp_port(via.port());
        }
        // Setup, not init: a reset connection runs it again.
        let zone = options
            .time_zone
            .map(|hours| format!("SET time_zone = '{hours:+03}:00'"));
        let clock = options.clock.map(|hours| {
            let seconds = i32::from(hours) * 3600;
            format!("SET timestamp = UNIX_TIMESTAMP() + {seconds}")
        });
        opts.setup(zone.into_iter().chain(clock).collect::<Vec<_>>())
    }
}

#[async_trait]
impl Harness for MySqlHarness {
    type Store = MySqlStore;

    fn capabilities() -> Capabilities {
        let mut capabilities = Capabilities::all();
        // A failed statement leaves the transaction alive, InnoDB checks constraints at once, and
        // one server's COMMIT does not conflict.
        capabilities.dooming = false;
        capabilities.commit_conflicts = false;
        capabilities.deferred_constraints = false;
        capabilities
    }

    async fn setup() -> Result<Self, HarnessError> {
        Self::world(&server_url()?, None).await?.migrated().await
    }

    async fn store(&self, options: &StoreOptions) -> Result<MySqlStore, HarnessError> {
        let store = MySqlConfig::new()
            .max_connections(options.connections as usize)
            .acquire_timeout(options.acquire_timeout)
            .from_opts(self.opts(options))?;
        Ok(store)
    }

    async fn effect(&self, tx: &mut MySqlTx, account: &str) -> Result<(), HarnessError> {
        Ok(tx
            .exec_drop("INSERT INTO ledger (account) VALUES (?)", (account,))
            .await?)
    }

    async fn effects(&self, account: &str) -> Result<u64, HarnessError> {
        let sql = "SELECT COUNT(*) FROM ledger WHERE account = ?";
        self.count(sql, vec![account.as_bytes()]).await
    }

    async fn claims(&self, event: &Event) -> Result<u64, HarnessError> {
        let sql = "SELECT COUNT(*) FROM processed_events WHERE source = ? AND event_id = ?";
        let names = [event.source().as_str(), event.id().as_str()];
        self.count(sql, names.map(str::as_bytes).to_vec()).await
    }

    async fn age(&self, event: &Event, by: Duration) -> Result<(), HarnessError> {
        let sql = "UPDATE processed_events SET received_at = received_at - INTERVAL ? SECOND
                   WHERE source = ? AND event_id = ?";
        let names = (
            event.source().as_str().as_bytes(),
            event.id().as_str().as_bytes(),
        );
        let mut outside = self.outside.lock().await;
        Ok(outside
            .exec_drop(sql, (by.as_secs(), names.0, names.1))
            .await?)
    }

    async fn waiting(&self) -> Result<u32, HarnessError> {
        // innodb_trx shows what it showed for as long as somebody looks more often than each 100 ms,
        // so: statements that stand still while some transaction of the server waits for a lock.
        let before = self.at_work().await?;
        tokio::time::sleep(Duration::from_millis(30)).await;
        let mut outside = self.outside.lock().await;
        let status: Option<(String, u32)> = outside
            .query_first("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'")
            .await?;
        drop(outside);
        let still = self.at_work().await?;
        let standing = before.iter().filter(|work| still.contains(work)).count();
        Ok(u32::try_from(standing)?.min(status.ok_or("no such status")?.1))
    }

    async fn waits(&self) -> Result<String, HarnessError> {
        let sessions = self.at_work().await?.into_iter();
        let sessions: Vec<String> = sessions
            .map(|(id, info)| format!("session {id} runs {}", &info[..info.len().min(60)]))
            .collect();
        let sql =
            "SELECT GROUP_CONCAT(CONCAT('session ', trx_mysql_thread_id, ' is in ', trx_state)
                   SEPARATOR '; ') FROM information_schema.innodb_trx";
        let open: Option<Option<String>> = self.outside.lock().await.query_first(sql).await?;
        let open = open.flatten().unwrap_or_else(|| "none".to_owned());
        Ok(format!("{}; transactions: {open}", sessions.join("; ")))
    }

    async fn connections(&self) -> Result<u32, HarnessError> {
        let sql = "SELECT COUNT(*) - 1 FROM information_schema.processlist WHERE db = ?";
        Ok(u32::try_from(
            self.count(sql, vec![self.name.as_bytes()]).await?,
        )?)
    }

    async fn savepoint(&self, tx: &mut MySqlTx, account: &str) -> Result<(), HarnessError> {
        let savepoint = tx.savepoint().await?;
        self.effect(tx, account).await?;
        let failed = tx.query_drop("SELECT * FROM no_such_table").await;
        tx.rollback_to(&savepoint).await?;
        match failed {
            Ok(()) => Err("a statement on no table did not fail".into()),
            Err(_undone) => Ok(()),
        }
    }

    async fn slow_statement(&self, tx: &mut MySqlTx, seconds: u32) -> Result<(), HarnessError> {
        Ok(tx.query_drop(format!("SELECT SLEEP({seconds})")).await?)
    }

    fn escapes() -> &'static [Escape] {
        escapes::ALL
    }

    async fn escape(&self, tx: &mut MySqlTx, escape: &Escape) -> Result<(), HarnessError> {
        if *escape == escapes::HIDDEN_DEADLOCK {
            let _hidden = self.conflict(tx).await?;
            return Ok(());
        }
        for statement in escape.name.split("; ") {
            tx.query_drop(statement).await?;
        }
        Ok(())
    }

    async fn conflict(&self, tx: &mut MySqlTx) -> Result<HarnessError, HarnessError> {
        let mut other = self.connect().await?;
        other.query_drop("BEGIN").await?;
        // InnoDB picks the transaction that changed less, so the other one changes more.
        other
            .query_drop("UPDATE counters SET n = n + 1 WHERE id > 1")
            .await?;
        tx.query_drop("UPDATE counters SET n = n + 1 WHERE id = 1")
            .await?;
        let blocked = tokio::spawn(async move {
            let _ = other
                .query_drop("UPDATE counters SET n = n + 1 WHERE id = 1")
                .await;
            let _ = other.query_drop("ROLLBACK").await;
        });
        while self.waiting().await? == 0 {
            tokio::task::yield_now().await;
        }
        let victim = tx
            .query_drop("UPDATE counters SET n = n + 1 WHERE id = 2")
            .await;
        match victim {
            Ok(()) => Err("the deadlock did not happen".into()),
            Err(error) => {
                blocked.await?;
                Ok(error.into())
            }
        }
    }

    fn server_addr(&self) -> Option<SocketAddr> {
        Some(SocketAddr::new(
            self.opts.ip_or_hostname().parse().ok()?,
            self.opts.tcp_port(),
        ))
    }

    async fn setup_empty() -> Result<Self, HarnessError> {
        Self::world(&server_url()?, None).await
    }

    async fn migrate(&self, store: &MySqlStore) -> Result<(), StoreError> {
        store.migrate().await
    }

    async fn tamper(&self) -> Result<(), HarnessError> {
        self.run("UPDATE processed_events_migrations SET checksum = REPEAT('0', 64)")
            .await
    }

    async fn advance_schema(&self, compatible: bool) -> Result<(), HarnessError> {
        let compatible_with = if compatible { 1 } else { 1_000 };
        self.run(&format!(
            "INSERT INTO processed_events_migrations (version, name, checksum, compatible_with)
             VALUES (1000, 'future', REPEAT('0', 64), {compatible_with})"
        ))
        .await
    }

    fn spoils() -> &'static [&'static str] {
        spoils::NAMES
    }

    async fn spoil(&self, spoil: &str) -> Result<(), HarnessError> {
        for statement in spoils::sql(spoil).ok_or("no such spoil")?.split("; ") {
            self.run(statement).await?;
        }
        Ok(())
    }

    async fn setup_restartable() -> Result<Self, HarnessError> {
        let server = tokio::task::spawn_blocking(MariaDbServer::start).await??;
        let url = server.url();
        Self::world(&url, Some(Arc::new(server)))
            .await?
            .migrated()
            .await
    }

    async fn restart(&self) -> Result<(), HarnessError> {
        let server = self
            .server
            .clone()
            .ok_or("this world has no server of its own")?;
        tokio::task::spawn_blocking(move || server.kill_and_restart()).await??;
        *self.outside.lock().await = Conn::new(self.opts.clone()).await?;
        Ok(())
    }

    async fn teardown(self) -> Result<(), HarnessError> {
        let mut outside = self.outside.into_inner();
        outside
            .query_drop(format!("DROP DATABASE {}", self.name))
            .await?;
        Ok(outside.disconnect().await?)
    }
}
