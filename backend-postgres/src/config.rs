//! How a store is set up.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{ManagerConfig, Pool, RecyclingMethod};
use onceonly::{StoreError, StoreErrorKind};
use onceonly_migrations::DEFAULT_TABLE;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{Config, Socket};

use crate::cancel::CancelStream;
use crate::connector::{Canceller, Connector, Plain, Typed};
use crate::settings::{Isolation, UnsafeSetting};
use crate::store::PostgresStore;
use crate::url::ConnectionUrl;

/// PostgreSQL cuts names at 63 bytes; the longest that is made from the table's is
/// `<table>_received_at`.
const LONGEST_TABLE: usize = 63 - "_received_at".len();

/// Settings of a [`PostgresStore`].
///
/// ```no_run
/// use std::time::Duration;
/// use onceonly_postgres::{Isolation, PostgresConfig};
///
/// # async fn example() -> Result<(), onceonly::StoreError> {
/// let store = PostgresConfig::new()
///     .schema("billing")
///     .max_connections(16)
///     .acquire_timeout(Duration::from_secs(2))
///     .isolation(Isolation::RepeatableRead)
///     .connect("postgres://app@localhost/shop")
///     .await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct PostgresConfig {
    pub(crate) schema: Option<String>,
    pub(crate) table: String,
    pub(crate) isolation: Isolation,
    pub(crate) acquire_timeout: Duration,
    pub(crate) allowed: BTreeSet<UnsafeSetting>,
    max_connections: usize,
    connector: Option<Arc<dyn Connector>>,
    server: Option<Config>,
}

impl Default for PostgresConfig {
    fn default() -> Self {
        Self::new()
    }
}

impl PostgresConfig {
    /// The defaults: table `processed_events` on the connection's search path, READ COMMITTED, up to
    /// 10 connections, 5 s to get one.
    #[must_use]
    pub fn new() -> Self {
        Self {
            schema: None,
            table: DEFAULT_TABLE.to_owned(),
            isolation: Isolation::ReadCommitted,
            acquire_timeout: Duration::from_secs(5),
            allowed: BTreeSet::new(),
            max_connections: 10,
            connector: None,
            server: None,
        }
    }

    /// The schema of the claim table. Taken as it is and quoted: `Billing` and `billing` differ.
    ///
    /// Without it the connection's `search_path` decides, for each claim anew. Name it if anybody who
    /// shares the connections, `apply` or other clients of a pooler, sets `search_path` without LOCAL:
    /// claims would go to another schema's table from then on.
    #[must_use]
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = Some(schema.into());
        self
    }

    /// The name of the claim table, at most 51 bytes. Taken as it is and quoted.
    #[must_use]
    pub fn table(mut self, table: impl Into<String>) -> Self {
        self.table = table.into();
        self
    }

    /// The isolation level of every claim's transaction, whatever the server's default is.
    #[must_use]
    pub const fn isolation(mut self, isolation: Isolation) -> Self {
        self.isolation = isolation;
        self
    }

    /// How long to wait for a connection of the pool, a new connection's handshake included.
    ///
    /// When it passed, the answer is [`Unavailable`](StoreErrorKind::Unavailable). It applies to a
    /// pool of your own too, beside that pool's timeouts.
    #[must_use]
    pub const fn acquire_timeout(mut self, limit: Duration) -> Self {
        self.acquire_timeout = limit;
        self
    }

    /// The most connections that the pool opens; at least 1. Without effect on a pool of your own.
    #[must_use]
    pub const fn max_connections(mut self, connections: usize) -> Self {
        self.max_connections = if connections == 0 { 1 } else { connections };
        self
    }

    /// Accepts a setting that can lose acknowledged events, which [`PostgresStore::check`] else
    /// refuses.
    #[must_use]
    pub fn allow_unsafe(mut self, setting: UnsafeSetting) -> Self {
        self.allowed.insert(setting);
        self
    }

    /// A TLS connector of your own, in place of the one that the URL's `sslmode` asks for.
    ///
    /// Connectors that are generic over their stream fit: those of tokio-postgres-rustls,
    /// postgres-native-tls and postgres-openssl.
    ///
    /// Give the same one beside [`from_pool`](Self::from_pool) as you gave to the pool: cancelling
    /// a statement opens a connection of its own to the server. Without it, a pool whose
    /// connections need TLS can't cancel, and a statement that was given up goes on until the
    /// server finds its connection closed.
    #[must_use]
    pub fn tls<T>(mut self, connector: T) -> Self
    where
        T: MakeTlsConnect<Socket> + MakeTlsConnect<CancelStream> + Clone + Sync + Send + 'static,
        <T as MakeTlsConnect<Socket>>::Stream: Sync + Send,
        <T as MakeTlsConnect<Socket>>::TlsConnect: Sync + Send,
        <<T as MakeTlsConnect<Socket>>::TlsConnect as TlsConnect<Socket>>::Future: Send,
        <T as MakeTlsConnect<CancelStream>>::Stream: Send + 'static,
        <T as MakeTlsConnect<CancelStream>>::TlsConnect: Send,
        <<T as MakeTlsConnect<CancelStream>>::TlsConnect as TlsConnect<CancelStream>>::Future:
            Send + 'static,
    {
        self.connector = Some(Arc::new(Typed(connector)));
        self
    }

    /// What a pool of your own connects to: the configuration that it was built from.
    ///
    /// Only cancel requests use it, to behave as libpq's do. Give it beside
    /// [`from_pool`](Self::from_pool) if the pool connects to PgBouncer before 1.19.1: without it
    /// they are sent by tokio-postgres, which closes their connection early, and a crash of PgBouncer
    /// can follow ([pgbouncer#801](https://github.com/pgbouncer/pgbouncer/issues/801); measured on
    /// 1.18.0).
    #[must_use]
    pub fn server(mut self, config: Config) -> Self {
        self.server = Some(config);
        self
    }

    /// Opens a pool of its own, and one connection at once, to find out that the database answers.
    ///
    /// `url` is `postgres://user:password@host:port/database?sslmode=…`, with the options of
    /// [`tokio_postgres::Config`] and in addition `sslmode=verify-ca`, `sslmode=verify-full` and
    /// `sslrootcert=<PEM file>`, which mean what they mean to libpq. Unless the URL says otherwise,
    /// a vanished server is noticed within a minute or so (`keepalives_idle`, `tcp_user_timeout`).
    ///
    /// # Errors
    ///
    /// [`Unsupported`](StoreErrorKind::Unsupported) for an invalid URL or name, or when the URL asks
    /// for TLS and the crate was built without the feature `rustls`;
    /// [`Unavailable`](StoreErrorKind::Unavailable) when no connection could be opened. The password
    /// is in none of them.
    pub async fn connect(self, url: &str) -> Result<PostgresStore, StoreError> {
        let ConnectionUrl { mut config, tls } = ConnectionUrl::parse(url)?;
        let connector = match &self.connector {
            Some(own) => Arc::clone(own),
            None => tls.connector()?,
        };
        notice_dead_peers(&mut config, self.acquire_timeout);
        let recycling = ManagerConfig {
            recycling_method: RecyclingMethod::Fast,
        };
        let server = Some(config.clone());
        let pool = Pool::builder(connector.manager(config, recycling))
            .max_size(self.max_connections)
            .build()
            .map_err(|error| {
                StoreError::new(StoreErrorKind::Unsupported, error.to_string()).with_source(error)
            })?;
        let store = self.build(pool, Canceller { connector, server })?;
        store.acquire().await?.give_back();
        Ok(store)
    }

    /// Uses a pool that you have already, so that claims and the rest of the program share its
    /// connections.
    ///
    /// Every recycling method of deadpool works. If its connections use TLS, give the connector to
    /// [`tls`](Self::tls) as well.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](StoreErrorKind::Unsupported) for an invalid name of the table or schema.
    /// Nothing is opened yet.
    pub fn from_pool(self, pool: Pool) -> Result<PostgresStore, StoreError> {
        let connector = match &self.connector {
            Some(own) => Arc::clone(own),
            None => Arc::new(Plain),
        };
        let server = self.server.clone();
        self.build(pool, Canceller { connector, server })
    }

    fn build(self, pool: Pool, canceller: Canceller) -> Result<PostgresStore, StoreError> {
        name("table", &self.table, LONGEST_TABLE)?;
        if let Some(schema) = &self.schema {
            name("schema", schema, 63)?;
        }
        Ok(PostgresStore::new(self, pool, canceller))
    }
}

fn name(what: &str, name: &str, longest: usize) -> Result<(), StoreError> {
    let fault = if name.is_empty() {
        "is empty".to_owned()
    } else if name.contains('\0') {
        "holds a NUL".to_owned()
    } else if name.len() > longest {
        format!("is longer than {longest} bytes")
    } else {
        return Ok(());
    };
    Err(StoreError::new(
        StoreErrorKind::Unsupported,
        format!("the name of the {what} {fault}"),
    ))
}

/// The defaults of the operating system are two hours for an idle connection and about 15 minutes
/// for one with data under way.
fn notice_dead_peers(config: &mut Config, acquire_timeout: Duration) {
    const UNSET_IDLE: Duration = Duration::from_secs(2 * 60 * 60);
    if config.get_keepalives_idle() == UNSET_IDLE {
        config.keepalives_idle(Duration::from_secs(30));
        if config.get_keepalives_interval().is_none() {
            config.keepalives_interval(Duration::from_secs(10));
        }
        if config.get_keepalives_retries().is_none() {
            config.keepalives_retries(3);
        }
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(Duration::from_secs(60));
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(acquire_timeout);
    }
    if config.get_application_name().is_none() {
        config.application_name("onceonly");
    }
}

impl fmt::Debug for PostgresConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresConfig")
            .field("schema", &self.schema)
            .field("table", &self.table)
            .field("isolation", &self.isolation)
            .field("acquire_timeout", &self.acquire_timeout)
            .field("max_connections", &self.max_connections)
            .field("allowed", &self.allowed)
            .finish_non_exhaustive()
    }
}
