//! What a team can set, and what it may allow by name.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mysql_async::{Opts, OptsBuilder, Pool, PoolConstraints};
use onceonly::{StoreError, StoreErrorKind};
use onceonly_migrations::DEFAULT_TABLE;

use crate::error;
use crate::store::MySqlStore;

pub(crate) const DEFAULT_ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
/// A pool does not tell its options.
pub(crate) const THE_POOLS_SERVER: &str = "the pool's server";
/// MySQL allows 64 characters, and the longest name that is made of the table's is
/// `<table>_received_at`.
const LONGEST_TABLE: usize = 64 - "_received_at".len();

/// A server setting that loses acknowledged events when the power fails.
///
/// [`MySqlStore::check`] refuses it unless the team allows it by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UnsafeSetting {
    /// `innodb_flush_log_at_trx_commit` is 0 or 2: the last second of commits may be lost.
    FlushLogAtTrxCommit,
    /// `sync_binlog` is not 1 while the binary log is on: after a crash of the machine InnoDB rolls
    /// back what it prepared and does not find in the binary log. MariaDB's default is 0.
    SyncBinlog,
}

/// Settings of a [`MySqlStore`]. Got from [`MySqlStore::builder`] or
/// [`MySqlStore::builder_with_pool`].
#[must_use = "build() makes the store"]
pub struct MySqlStoreBuilder {
    origin: Origin,
    table: String,
    acquire_timeout: Duration,
    max_connections: Option<usize>,
    allowed: Vec<UnsafeSetting>,
}

enum Origin {
    Opts(Opts),
    Pool(Pool),
}

impl MySqlStoreBuilder {
    fn new(origin: Origin) -> Self {
        Self {
            origin,
            table: DEFAULT_TABLE.to_owned(),
            acquire_timeout: DEFAULT_ACQUIRE_TIMEOUT,
            max_connections: None,
            allowed: Vec::new(),
        }
    }

    pub(crate) fn from_opts(opts: Opts) -> Self {
        Self::new(Origin::Opts(opts))
    }

    pub(crate) fn from_pool(pool: Pool) -> Self {
        Self::new(Origin::Pool(pool))
    }

    /// The claim table's name, `processed_events` unless it is set. At most 52 characters, since
    /// indexes and views are named after it. It is in the connection's database.
    pub fn table(mut self, name: impl Into<String>) -> Self {
        self.table = name.into();
        self
    }

    /// How long to wait for a connection from the pool, 5 seconds unless it is set. When it passes,
    /// the answer is [`Unavailable`](StoreErrorKind::Unavailable).
    pub const fn acquire_timeout(mut self, limit: Duration) -> Self {
        self.acquire_timeout = limit;
        self
    }

    /// Connections at most, from 1; else as the driver's options say (100 by default). Not for a
    /// pool of the team's own, which has its limit already.
    pub const fn max_connections(mut self, count: usize) -> Self {
        self.max_connections = Some(count);
        self
    }

    /// Accepts a setting that [`MySqlStore::check`] would refuse.
    pub fn allow_unsafe(mut self, setting: UnsafeSetting) -> Self {
        self.allowed.push(setting);
        self
    }

    /// The store. It connects when it is first used.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](StoreErrorKind::Unsupported) when the table's name or the number of
    /// connections can't be.
    pub fn build(self) -> Result<MySqlStore, StoreError> {
        let Self {
            origin,
            table,
            acquire_timeout,
            max_connections,
            allowed,
        } = self;
        let length = table.chars().count();
        if length == 0 || length > LONGEST_TABLE || table.contains('\0') || table.ends_with(' ') {
            return Err(StoreError::new(
                StoreErrorKind::Unsupported,
                format!(
                    "a table can't be named {table:?}: use 1 to {LONGEST_TABLE} characters without \
                     NUL and without a space at the end"
                ),
            ));
        }
        #[cfg(feature = "rustls")]
        crate::tls::install_provider();
        let (address, sessions) = match &origin {
            Origin::Opts(opts) => (error::address(opts), Some(Arc::default())),
            Origin::Pool(_) => (THE_POOLS_SERVER.to_owned(), None),
        };
        let pool = match (origin, max_connections) {
            (Origin::Opts(opts), None) => Pool::new(opts),
            (Origin::Opts(opts), Some(count)) => Pool::new(limited(opts, count)?),
            (Origin::Pool(pool), None) => pool,
            (Origin::Pool(_), Some(_)) => {
                return Err(StoreError::new(
                    StoreErrorKind::Unsupported,
                    "max_connections is for a pool that the store makes: set the limit of your own \
                     pool in its PoolOpts",
                ));
            }
        };
        Ok(MySqlStore::new(
            pool,
            address,
            sessions,
            table,
            acquire_timeout,
            allowed,
        ))
    }
}

impl fmt::Debug for MySqlStoreBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MySqlStoreBuilder")
            .field("table", &self.table)
            .field("acquire_timeout", &self.acquire_timeout)
            .field("max_connections", &self.max_connections)
            .field("allowed", &self.allowed)
            .finish_non_exhaustive()
    }
}

fn limited(opts: Opts, count: usize) -> Result<OptsBuilder, StoreError> {
    let pool = opts.pool_opts().clone();
    let least = pool.constraints().min().min(count);
    let constraints = PoolConstraints::new(least, count)
        .filter(|_| count > 0)
        .ok_or_else(|| {
            StoreError::new(
                StoreErrorKind::Unsupported,
                "a pool needs at least one connection",
            )
        })?;
    Ok(OptsBuilder::from_opts(opts).pool_opts(pool.with_constraints(constraints)))
}

/// The driver's options of a URL. Its own default is to leave TCP for the Unix socket that the
/// server names, which in front of a container or a tunnel is another server's: so only if asked.
pub(crate) fn opts(url: &str) -> Result<Opts, StoreError> {
    let opts = Opts::from_url(url).map_err(|error| {
        StoreError::new(
            StoreErrorKind::Unsupported,
            "invalid URL: write mysql://user:password@host:3306/database",
        )
        .with_source(error)
    })?;
    if url.contains("prefer_socket=") {
        return Ok(opts);
    }
    Ok(OptsBuilder::from_opts(opts).prefer_socket(false).into())
}
