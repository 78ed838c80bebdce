//! The ledger in the database, read on connections of this program's own.

use std::env;
use std::error::Error;

use clap::ValueEnum;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, OptsBuilder};
use rand::distr::{Alphanumeric, SampleString};
use tokio::runtime::{Builder, Runtime};

use crate::events::Event;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// On which database billing runs.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Kind {
    Sqlite,
    Postgres,
    Mysql,
}

/// A line of the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) source: String,
    pub(crate) event_id: String,
    pub(crate) amount: i64,
}

impl Entry {
    pub(crate) fn is_of(&self, event: &Event) -> bool {
        self.source == event.sender.source() && self.event_id == event.id
    }
}

const LEDGER: &str = "SELECT source, event_id, amount FROM ledger";
/// One credit is lost and another one is doubled.
const SABOTAGE: [&str; 2] = [
    "DELETE FROM ledger WHERE id = (SELECT id FROM (SELECT max(id) AS id FROM ledger) AS last)",
    "INSERT INTO ledger (account, amount, source, event_id)
     SELECT account, amount, source, event_id FROM ledger ORDER BY id LIMIT 1",
];

/// A database that was made for this run. Dropping it removes it.
pub(crate) struct Database {
    server: Server,
    url: String,
    runtime: Runtime,
}

enum Server {
    Sqlite { _folder: tempfile::TempDir },
    Postgres { admin: String, name: String },
    MySql { admin: String, name: String },
}

impl Database {
    pub(crate) fn create(kind: Kind) -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let random = Alphanumeric.sample_string(&mut rand::rng(), 12);
        let name = format!("deliver_{}", random.to_lowercase());
        let create = format!("CREATE DATABASE {name}");
        let (server, url) = match kind {
            Kind::Sqlite => {
                let folder = tempfile::Builder::new().prefix("deliver").tempdir()?;
                let file = folder.path().join("billing.db");
                let url = file.to_str().ok_or("the temporary folder is not UTF-8")?;
                let url = url.to_owned();
                (Server::Sqlite { _folder: folder }, url)
            }
            Kind::Postgres => {
                let admin = given("ONCEONLY_POSTGRES_URL")?;
                runtime.block_on(postgres(&admin, &create))?;
                let url = beside(&admin, &name)?;
                (Server::Postgres { admin, name }, url)
            }
            Kind::Mysql => {
                let admin = given("ONCEONLY_MYSQL_URL")?;
                runtime.block_on(mysql(&admin, &create))?;
                let url = beside(&admin, &name)?;
                (Server::MySql { admin, name }, url)
            }
        };
        Ok(Self {
            server,
            url,
            runtime,
        })
    }

    /// What billing gets as its `DATABASE_URL`.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn ledger(&self) -> Result<Vec<Entry>> {
        self.query(LEDGER)
    }

    /// Does wrong behind billing's back.
    pub(crate) fn sabotage(&self) -> Result<()> {
        for sql in SABOTAGE {
            self.query(sql)?;
        }
        Ok(())
    }

    fn query(&self, sql: &str) -> Result<Vec<Entry>> {
        match &self.server {
            Server::Sqlite { .. } => sqlite(&self.url, sql),
            Server::Postgres { .. } => self.runtime.block_on(postgres(&self.url, sql)),
            Server::MySql { .. } => self.runtime.block_on(mysql(&self.url, sql)),
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let removed = match &self.server {
            Server::Sqlite { .. } => return,
            Server::Postgres { admin, name } => {
                let sql = format!("DROP DATABASE {name} WITH (FORCE)");
                self.runtime.block_on(postgres(admin, &sql))
            }
            Server::MySql { admin, name } => {
                let sql = format!("DROP DATABASE {name}");
                self.runtime.block_on(mysql(admin, &sql))
            }
        };
        if let Err(error) = removed {
            eprintln!("deliver: its database stays: {error}");
        }
    }
}

fn given(variable: &str) -> Result<String> {
    env::var(variable).map_err(|_| {
        format!("{variable} is not set: run `cargo xtask deliver`, which starts a server").into()
    })
}

/// The URL of another database on the same server.
fn beside(url: &str, name: &str) -> Result<String> {
    let (place, options) = match url.split_once('?') {
        Some((place, options)) => (place, format!("?{options}")),
        None => (url, String::new()),
    };
    let (server, _) = place.rsplit_once('/').ok_or("a URL without a database")?;
    Ok(format!("{server}/{name}{options}"))
}

fn sqlite(path: &str, sql: &str) -> Result<Vec<Entry>> {
    let connection = rusqlite::Connection::open(path)?;
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map((), |row| {
        Ok(Entry {
            source: row.get(0)?,
            event_id: row.get(1)?,
            amount: row.get(2)?,
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

async fn postgres(url: &str, sql: &str) -> Result<Vec<Entry>> {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
    let driving = tokio::spawn(connection);
    let rows = client.query(sql, &[]).await?;
    drop(client);
    driving.await??;
    let entry = |row: &tokio_postgres::Row| {
        Ok(Entry {
            source: row.try_get(0)?,
            event_id: row.try_get(1)?,
            amount: row.try_get(2)?,
        })
    };
    rows.iter().map(entry).collect()
}

async fn mysql(url: &str, sql: &str) -> Result<Vec<Entry>> {
    let opts = OptsBuilder::from_opts(Opts::from_url(url)?).prefer_socket(false);
    let mut conn = Conn::new(opts).await?;
    let entry = |(source, event_id, amount)| Entry {
        source,
        event_id,
        amount,
    };
    let entries = conn.query_map(sql, entry).await?;
    conn.disconnect().await?;
    Ok(entries)
}
