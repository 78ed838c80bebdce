//! What the conformance suite needs to know of PostgreSQL. A world is a database of its own.

#![allow(dead_code, reason = "each test file uses a part of it")]

mod escapes;
mod spoils;

use std::env;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use onceonly::{Event, StoreError};
use onceonly_conformance::{Capabilities, Escape, Harness, HarnessError, StoreOptions};
use onceonly_postgres::{PostgresConfig, PostgresStore, PostgresTx};
use onceonly_test_servers::PostgresServer;
use tokio::sync::RwLock;
use tokio_postgres::{Client, Config, NoTls};

/// Tables beside the claims: what `apply` writes, and what it can collide with.
const TABLES: &str = "
    CREATE TABLE ledger (id bigserial PRIMARY KEY, account text NOT NULL);
    CREATE TABLE counters (id int PRIMARY KEY, n int NOT NULL);
    INSERT INTO counters VALUES (1, 0), (2, 0);
    CREATE TABLE parents (id int PRIMARY KEY);
    CREATE TABLE children (parent int REFERENCES parents DEFERRABLE INITIALLY DEFERRED);
    CREATE TABLE losers (id int);
    CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'lost to another transaction' USING ERRCODE = '40001'; END $$;
    CREATE CONSTRAINT TRIGGER lose AFTER INSERT ON losers DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION lose();
";

/// Where `now()` means another time, for sessions that look there first.
fn clock_schema(hours: i8) -> String {
    format!("clock_{}", i32::from(hours) + 100)
}

/// A database of its own on the server of the test run.
pub(crate) struct PostgresHarness {
    config: Config,
    outside: RwLock<Client>,
    server: Option<Arc<PostgresServer>>,
}

fn server_url() -> Result<String, HarnessError> {
    env::var("ONCEONLY_POSTGRES_URL").map_err(|_| {
        "ONCEONLY_POSTGRES_URL is not set: run `cargo xtask test`, which starts a server".into()
    })
}

async fn connect(config: &Config) -> Result<Client, HarnessError> {
    let mut config = config.clone();
    let (client, connection) = config.application_name("harness").connect(NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

impl PostgresHarness {
    async fn world(url: &str, server: Option<Arc<PostgresServer>>) -> Result<Self, HarnessError> {
        let mut config: Config = url.parse()?;
        let name = format!("world_{:016x}", rand::random::<u64>());
        connect(&config)
            .await?
            .batch_execute(&format!("CREATE DATABASE {name}"))
            .await?;
        config.dbname(&name);
        let outside = connect(&config).await?;
        outside.batch_execute(TABLES).await?;
        Ok(Self {
            config,
            outside: outside.into(),
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

    async fn count(&self, sql: &str, text: &[&str]) -> Result<u64, HarnessError> {
        let parameters: Vec<&(dyn tokio_postgres::types::ToSql + Sync)> =
            text.iter().map(|text| text as _).collect();
        let count: i64 = self
            .outside
            .read()
            .await
            .query_one(sql, &parameters)
            .await?
            .get(0);
        Ok(u64::try_from(count)?)
    }

    /// A world's connection that the store never sees.
    pub(crate) async fn connect(&self) -> Result<Client, HarnessError> {
        connect(&self.config).await
    }

    /// A store on this world with settings of a test's own.
    pub(crate) async fn open(&self, config: PostgresConfig) -> Result<PostgresStore, HarnessError> {
        Ok(config.connect(&self.url(&StoreOptions::default())?).await?)
    }

    /// How to reach this world's database.
    pub(crate) const fn config(&self) -> &Config {
        &self.config
    }

    pub(crate) fn url(&self, options: &StoreOptions) -> Result<String, HarnessError> {
        let addr = match options.via {
            Some(via) => via,
            None => self
                .server_addr()
                .ok_or("the server's URL has no TCP address")?,
        };
        let user = self.config.get_user().unwrap_or("postgres");
        let password = match self.config.get_password() {
            Some(password) => format!(":{}", std::str::from_utf8(password)?),
            None => String::new(),
        };
        let name = self.config.get_dbname().unwrap_or_default();
        // Unencrypted, so that a proxy of the suite sees the COMMIT go by.
        let mut url = format!("postgres://{user}{password}@{addr}/{name}?sslmode=disable");
        if let Some(hours) = options.time_zone {
            // POSIX names count westwards.
            url.push_str(&format!("&options=-c%20TimeZone%3DXXX{}", -hours));
        }
        if let Some(hours) = options.clock {
            let schema = clock_schema(hours);
            url.push_str(&format!(
                "&options=-c%20search_path%3D{schema},pg_catalog,public"
            ));
        }
        Ok(url)
    }
}

#[async_trait]
impl Harness for PostgresHarness {
    type Store = PostgresStore;

    fn capabilities() -> Capabilities {
        Capabilities::all()
    }

    async fn setup() -> Result<Self, HarnessError> {
        Self::world(&server_url()?, None).await?.migrated().await
    }

    async fn store(&self, options: &StoreOptions) -> Result<PostgresStore, HarnessError> {
        if let Some(hours) = options.clock {
            let schema = clock_schema(hours);
            let clock = format!(
                "CREATE SCHEMA {schema}; CREATE FUNCTION {schema}.now() RETURNS timestamptz \
                 LANGUAGE sql STABLE AS 'SELECT pg_catalog.now() + interval ''{hours} hours'''"
            );
            self.outside.read().await.batch_execute(&clock).await?;
        }
        let store = PostgresConfig::new()
            .max_connections(options.connections as usize)
            .acquire_timeout(options.acquire_timeout)
            .connect(&self.url(options)?)
            .await?;
        Ok(store)
    }

    async fn effect(&self, tx: &mut PostgresTx, account: &str) -> Result<(), HarnessError> {
        tx.execute("INSERT INTO ledger (account) VALUES ($1)", &[&account])
            .await?;
        Ok(())
    }

    async fn effects(&self, account: &str) -> Result<u64, HarnessError> {
        self.count("SELECT count(*) FROM ledger WHERE account = $1", &[account])
            .await
    }

    async fn claims(&self, event: &Event) -> Result<u64, HarnessError> {
        let sql = "SELECT count(*) FROM processed_events WHERE source = $1 AND event_id = $2";
        self.count(sql, &[event.source().as_str(), event.id().as_str()])
            .await
    }

    async fn age(&self, event: &Event, by: Duration) -> Result<(), HarnessError> {
        let sql = "UPDATE processed_events SET received_at = received_at - $3 * interval '1 second'
                   WHERE source = $1 AND event_id = $2";
        let names = (event.source().as_str(), event.id().as_str());
        self.outside
            .read()
            .await
            .execute(sql, &[&names.0, &names.1, &by.as_secs_f64()])
            .await?;
        Ok(())
    }

    async fn waiting(&self) -> Result<u32, HarnessError> {
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
                   AND application_name <> 'harness' AND wait_event_type = 'Lock'";
        Ok(u32::try_from(self.count(sql, &[]).await?)?)
    }

    async fn waits(&self) -> Result<String, HarnessError> {
        let sql =
            "SELECT coalesce(string_agg(format('session %s (%s: %s) waits for %s', pid, state,
                   left(query, 60), pg_blocking_pids(pid)), '; '), 'nobody') FROM pg_stat_activity
                   WHERE datname = current_database() AND application_name <> 'harness'
                   AND wait_event_type = 'Lock'";
        Ok(self.outside.read().await.query_one(sql, &[]).await?.get(0))
    }

    async fn connections(&self) -> Result<u32, HarnessError> {
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
                   AND backend_type = 'client backend' AND application_name <> 'harness'";
        Ok(u32::try_from(self.count(sql, &[]).await?)?)
    }

    async fn savepoint(&self, tx: &mut PostgresTx, account: &str) -> Result<(), HarnessError> {
        let savepoint = tx.savepoint().await?;
        savepoint
            .execute("INSERT INTO ledger (account) VALUES ($1)", &[&account])
            .await?;
        let failed = savepoint.batch_execute("SELECT * FROM no_such_table").await;
        savepoint.rollback().await?;
        match failed {
            Ok(()) => Err("a statement on no table did not fail".into()),
            Err(_undone) => Ok(()),
        }
    }

    async fn slow_statement(&self, tx: &mut PostgresTx, seconds: u32) -> Result<(), HarnessError> {
        tx.batch_execute(&format!("SELECT pg_sleep({seconds})"))
            .await?;
        Ok(())
    }

    async fn doom(&self, tx: &mut PostgresTx) -> Result<(), HarnessError> {
        match tx.batch_execute("SELECT * FROM no_such_table").await {
            Ok(()) => Err("a statement on no table did not fail".into()),
            Err(_hidden) => Ok(()),
        }
    }

    fn escapes() -> &'static [Escape] {
        escapes::ALL
    }

    async fn escape(&self, tx: &mut PostgresTx, escape: &Escape) -> Result<(), HarnessError> {
        // One by one: a text of several statements is one implicit transaction to PostgreSQL.
        for statement in escape.name.split("; ") {
            tx.batch_execute(statement).await?;
        }
        Ok(())
    }

    async fn conflict(&self, tx: &mut PostgresTx) -> Result<HarnessError, HarnessError> {
        let other = self.connect().await?;
        other
            .batch_execute("SET deadlock_timeout = '10min'; BEGIN")
            .await?;
        other
            .batch_execute("UPDATE counters SET n = n + 1 WHERE id = 2")
            .await?;
        tx.batch_execute("SET LOCAL deadlock_timeout = '10ms'")
            .await?;
        tx.batch_execute("UPDATE counters SET n = n + 1 WHERE id = 1")
            .await?;
        let blocked = tokio::spawn(async move {
            let _ = other
                .batch_execute("UPDATE counters SET n = n + 1 WHERE id = 1")
                .await;
        });
        let waits = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
                     AND application_name = 'harness' AND wait_event_type = 'Lock'";
        while self.count(waits, &[]).await? == 0 {
            tokio::task::yield_now().await;
        }
        let victim = tx
            .batch_execute("UPDATE counters SET n = n + 1 WHERE id = 2")
            .await;
        blocked.abort();
        match victim {
            Ok(()) => Err("the deadlock did not happen".into()),
            Err(error) => Ok(error.into()),
        }
    }

    async fn conflict_at_commit(&self, tx: &mut PostgresTx) -> Result<(), HarnessError> {
        Ok(tx.batch_execute("INSERT INTO losers VALUES (1)").await?)
    }

    async fn refuse_commit(&self, tx: &mut PostgresTx) -> Result<(), HarnessError> {
        tx.batch_execute("INSERT INTO children VALUES (404)")
            .await?;
        Ok(())
    }

    fn server_addr(&self) -> Option<SocketAddr> {
        let port = self.config.get_ports().first().copied().unwrap_or(5432);
        match self.config.get_hosts().first()? {
            tokio_postgres::config::Host::Tcp(host) => {
                Some(SocketAddr::new(host.parse().ok()?, port))
            }
            _ => None,
        }
    }

    async fn setup_empty() -> Result<Self, HarnessError> {
        Self::world(&server_url()?, None).await
    }

    async fn migrate(&self, store: &PostgresStore) -> Result<(), StoreError> {
        store.migrate().await
    }

    async fn tamper(&self) -> Result<(), HarnessError> {
        let sql = "UPDATE processed_events_migrations SET checksum = repeat('0', 64)";
        Ok(self.outside.read().await.batch_execute(sql).await?)
    }

    async fn advance_schema(&self, compatible: bool) -> Result<(), HarnessError> {
        let compatible_with = if compatible { 1 } else { 1_000 };
        let sql = format!(
            "INSERT INTO processed_events_migrations (version, name, checksum, compatible_with)
             VALUES (1000, 'future', repeat('0', 64), {compatible_with})"
        );
        Ok(self.outside.read().await.batch_execute(&sql).await?)
    }

    fn spoils() -> &'static [&'static str] {
        spoils::NAMES
    }

    async fn spoil(&self, spoil: &str) -> Result<(), HarnessError> {
        let sql = spoils::sql(spoil).ok_or("no such spoil")?;
        let name = self.config.get_dbname().unwrap_or_default();
        Ok(self
            .outside
            .read()
            .await
            .batch_execute(&sql.replace("{database}", name))
            .await?)
    }

    async fn setup_restartable() -> Result<Self, HarnessError> {
        let server = tokio::task::spawn_blocking(PostgresServer::start).await??;
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
        *self.outside.write().await = self.connect().await?;
        Ok(())
    }

    async fn teardown(self) -> Result<(), HarnessError> {
        if self.server.is_some() {
            return Ok(());
        }
        let name = self.config.get_dbname().unwrap_or_default().to_owned();
        let mut config = self.config.clone();
        drop(self.outside);
        let admin = connect(config.dbname("postgres")).await?;
        admin
            .batch_execute(&format!("DROP DATABASE {name} WITH (FORCE)"))
            .await?;
        Ok(())
    }
}
