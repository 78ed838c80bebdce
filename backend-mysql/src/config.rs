//! What a team can set, and what it may allow by name.

use std::fmt;
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

/// How a [`MySqlStore`] behaves.
///
/// ```
/// use std::time::Duration;
///
/// use onceonly_mysql::{MySqlConfig, mysql_async};
///
/// let opts = mysql_async::Opts::from_url("mysql://app@db.internal/shop")?;
/// let store = MySqlConfig::new()
///     .table("claims_of_shop")
///     .max_connections(20)
///     .acquire_timeout(Duration::from_secs(1))
///     .from_opts(opts)?;
/// assert_eq!(store.table(), "claims_of_shop");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "connect(), from_opts() and from_pool() make the store"]
pub struct MySqlConfig {
    table: String,
    acquire_timeout: Duration,
    max_connections: Option<usize>,
    allowed: Vec<UnsafeSetting>,
}

impl MySqlConfig {
    /// The defaults.
    pub fn new() -> Self {
        Self {
            table: DEFAULT_TABLE.to_owned(),
            acquire_timeout: DEFAULT_ACQUIRE_TIMEOUT,
            max_connections: None,
            allowed: Vec::new(),
        }
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

    /// Opens a pool of its own, and one connection at once, to find out that the database answers.
    ///
    /// `url` is `mysql://user:password@host:3306/database`. Its parameters are the driver's, see
    /// [`mysql_async::Opts`]; `prefer_socket` is off here unless the URL turns it on.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](StoreErrorKind::Unsupported) when the URL is invalid, and as
    /// [`from_opts`](Self::from_opts); [`Unavailable`](StoreErrorKind::Unavailable) when no
    /// connection can be made within the [`acquire_timeout`](Self::acquire_timeout). The password is
    /// in none of them.
    pub async fn connect(self, url: &str) -> Result<MySqlStore, StoreError> {
        let store = self.from_opts(opts(url)?)?;
        store.reach().await?;
        Ok(store)
    }

    /// A store on a pool of its own. It connects when it is first used.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](StoreErrorKind::Unsupported) when the table's name or the number of
    /// connections can't be.
    #[allow(
        clippy::wrong_self_convention,
        reason = "the same name as on the other backends"
    )]
    pub fn from_opts(self, opts: impl Into<Opts>) -> Result<MySqlStore, StoreError> {
        let opts = opts.into();
        let address = error::address(&opts);
        install_provider();
        let pool = match self.max_connections {
            Some(count) => Pool::new(limited(opts, count)?),
            None => Pool::new(opts),
        };
        self.build(pool, address)
    }

    /// Uses a pool that you have already, with any options, so that claims and the rest of the
    /// program share its connections.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](StoreErrorKind::Unsupported) when the table's name can't be, or when
    /// [`max_connections`](Self::max_connections) is set: the pool has its own limit.
    #[allow(
        clippy::wrong_self_convention,
        reason = "the same name as on the other backends"
    )]
    pub fn from_pool(self, pool: Pool) -> Result<MySqlStore, StoreError> {
        if self.max_connections.is_some() {
            return Err(StoreError::new(
                StoreErrorKind::Unsupported,
                "max_connections is for a pool that the store makes: set the limit of your own \
                 pool in its PoolOpts",
            ));
        }
        install_provider();
        self.build(pool, THE_POOLS_SERVER.to_owned())
    }

    fn build(self, pool: Pool, address: String) -> Result<MySqlStore, StoreError> {
        let Self {
            table,
            acquire_timeout,
            allowed,
            ..
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
        Ok(MySqlStore::new(
            pool,
            address,
            table,
            acquire_timeout,
            allowed,
        ))
    }
}

impl Default for MySqlConfig {
    fn default() -> Self {
        Self::new()
    }
}

fn install_provider() {
    #[cfg(feature = "rustls")]
    crate::tls::install_provider();
}

impl fmt::Debug for MySqlConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MySqlConfig")
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
