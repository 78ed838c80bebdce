//! The ledger in the database, read on connections of this program's own.

use std::collections::BTreeMap;
use std::env;
use std::error::Error;

use clap::ValueEnum;
use mysql_async::prelude::Queryable;
use tokio::runtime::{Builder, Runtime};

use crate::billing::unique;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// On which database billing runs.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Kind {
    Sqlite,
    Postgres,
    Mysql,
}

/// Every line of the ledger: an event's id, and how often it was credited.
pub(crate) type Credited = BTreeMap<String, usize>;

const EVENTS: &str = "SELECT event_id FROM ledger";
const DOUBLE: &str = "INSERT INTO ledger (account, amount, source, event_id)
                      SELECT account, amount, source, event_id FROM ledger ORDER BY id LIMIT 1";

/// A database that was made for this run.
pub(crate) struct Ledger {
    server: Server,
    url: String,
    runtime: Runtime,
}

enum Server {
    Sqlite { _folder: tempfile::TempDir },
    Postgres { admin: String, name: String },
    MySql { admin: String, name: String },
}

impl Ledger {
    pub(crate) fn create(kind: Kind) -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let name = unique("deliver");
        let create = format!("CREATE DATABASE {name}");
        let (server, url) = match kind {
            Kind::Sqlite => {
                let folder = tempfile::Builder::new()
                    .prefix("deliver")
                    .tempdir_in("/var/tmp")?;
                let url = folder.path().join("billing.db").display().to_string();
                (Server::Sqlite { _folder: folder }, url)
            }
            Kind::Postgres => {
                let admin = given("ONCEONLY_POSTGRES_URL")?;
                runtime.block_on(postgres(&admin, &create))?;
                let url = beside(&admin, &name);
                (Server::Postgres { admin, name }, url)
            }
            Kind::Mysql => {
                let admin = given("ONCEONLY_MYSQL_URL")?;
                runtime.block_on(mysql(&admin, &create))?;
                let url = beside(&admin, &name);
                (Server::MySql { admin, name }, url)
            }
        };
        Ok(Self {
            server,
            url,
            runtime,
        })
    }

    /// What billing gets as its DATABASE_URL.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn credited(&self) -> Result<Credited> {
        let events = self.query(EVENTS)?;
        let mut credited = Credited::new();
        for event in events {
            *credited.entry(event).or_default() += 1;
        }
        Ok(credited)
    }

    /// Credits one event again, behind billing's back.
    pub(crate) fn double_one(&self) -> Result<()> {
        self.query(DOUBLE).map(drop)
    }

    pub(crate) fn remove(&self) -> Result<()> {
        match &self.server {
            Server::Sqlite { .. } => {}
            Server::Postgres { admin, name } => {
                let drop = format!("DROP DATABASE {name} WITH (FORCE)");
                self.runtime.block_on(postgres(admin, &drop))?;
            }
            Server::MySql { admin, name } => {
                self.runtime
                    .block_on(mysql(admin, &format!("DROP DATABASE {name}")))?;
            }
        }
        Ok(())
    }

    fn query(&self, sql: &str) -> Result<Vec<String>> {
        match &self.server {
            Server::Sqlite { .. } => {
                let connection = rusqlite::Connection::open(&self.url)?;
                let mut statement = connection.prepare(sql)?;
                let events = statement.query_map((), |row| row.get(0))?;
                Ok(events.collect::<rusqlite::Result<_>>()?)
            }
            Server::Postgres { .. } => self.runtime.block_on(postgres(&self.url, sql)),
            Server::MySql { .. } => self.runtime.block_on(mysql(&self.url, sql)),
        }
    }
}

fn given(variable: &str) -> Result<String> {
    env::var(variable).map_err(|_| {
        format!("{variable} is not set: run `cargo xtask deliver`, which starts a server").into()
    })
}

/// The URL of another database on the same server.
fn beside(url: &str, name: &str) -> String {
    let server = url.rsplit_once('/').map_or(url, |(server, _)| server);
    format!("{server}/{name}")
}

async fn postgres(url: &str, sql: &str) -> Result<Vec<String>> {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
    let driving = tokio::spawn(connection);
    let rows = client.query(sql, &[]).await?;
    drop(client);
    driving.await??;
    Ok(rows
        .iter()
        .map(|row| row.try_get(0))
        .collect::<std::result::Result<_, _>>()?)
}

async fn mysql(url: &str, sql: &str) -> Result<Vec<String>> {
    let mut conn = mysql_async::Conn::from_url(url).await?;
    let rows = conn.query(sql).await?;
    conn.disconnect().await?;
    Ok(rows)
}
