//! The store: [`ClaimStore`] and [`ClaimRecords`] on a pool of connections.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use mysql_async::Pool;
use onceonly::{
    Claim, ClaimRecords, ClaimStore, Duplicate, Event, EventId, Forget, Source, StoreError,
    StoreErrorKind,
};
use onceonly_migrations::DEFAULT_TABLE;
use tokio::runtime::Handle;
use tokio::sync::OnceCell;
use tokio::time::timeout;

use crate::claim::{self, Claiming, Decision};
use crate::config::{self, MySqlConfig, UnsafeSetting};
use crate::connection::Connection;
use crate::proof::Nonce;
use crate::statements::Statements;
use crate::transaction::MySqlTx;
use crate::{check, commit, error, migrate, prune};

/// Claims in a MySQL or MariaDB database.
///
/// Clones are cheap and share the pool. All connections, also those of a pool of the team's own, are
/// handed back outside of any transaction, whatever the pool's options are.
///
/// It needs a Tokio runtime with I/O and time enabled.
#[derive(Clone)]
pub struct MySqlStore {
    inner: Arc<Inner>,
}

struct Inner {
    pool: Pool,
    /// For messages.
    address: String,
    table: String,
    statements: Statements,
    acquire_timeout: Duration,
    allowed: Vec<UnsafeSetting>,
    checked: OnceCell<()>,
}

impl MySqlStore {
    /// Opens a pool of its own with the defaults of [`MySqlConfig`], and one connection at once.
    ///
    /// # Errors
    ///
    /// As [`MySqlConfig::connect`].
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        MySqlConfig::new().connect(url).await
    }

    /// A store on a pool that the team has already, with any options.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use onceonly_mysql::{MySqlStore, mysql_async};
    ///
    /// let pool = mysql_async::Pool::from_url("mysql://app@db.internal/shop?pool_max=20")?;
    /// let store = MySqlStore::from_pool(pool);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn from_pool(pool: Pool) -> Self {
        #[cfg(feature = "rustls")]
        crate::tls::install_provider();
        Self::new(
            pool,
            config::THE_POOLS_SERVER.to_owned(),
            DEFAULT_TABLE.to_owned(),
            config::DEFAULT_ACQUIRE_TIMEOUT,
            Vec::new(),
        )
    }

    /// The pool that claims take their connections from.
    #[must_use]
    pub fn pool(&self) -> &Pool {
        &self.inner.pool
    }

    pub(crate) fn new(
        pool: Pool,
        address: String,
        table: String,
        acquire_timeout: Duration,
        allowed: Vec<UnsafeSetting>,
    ) -> Self {
        Self {
            inner: Arc::new(Inner {
                statements: Statements::new(&table),
                pool,
                address,
                table,
                acquire_timeout,
                allowed,
                checked: OnceCell::new(),
            }),
        }
    }

    /// Finds out that the database answers.
    pub(crate) async fn reach(&self) -> Result<(), StoreError> {
        self.connection().await.map(drop)
    }

    /// The claim table's name.
    #[must_use]
    pub fn table(&self) -> &str {
        &self.inner.table
    }

    /// Brings the schema up to date, and checks it and the server's settings.
    ///
    /// Idempotent, and safe when many instances start at once: they take turns by `GET_LOCK`. MySQL
    /// commits each DDL statement by itself, so a migration that was interrupted half-way is taken
    /// up again by the next call. A schema that a newer version made is accepted as long as it says
    /// that it is compatible, and so is a table that another tool made from the same files.
    ///
    /// # Errors
    ///
    /// [`Schema`](StoreErrorKind::Schema) when an applied migration was changed since, the schema is
    /// newer and incompatible, or [`check`](Self::check) finds something; as a claim otherwise. What
    /// was applied before an error or a drop stays.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        let opts = {
            let connection = self.connection().await?;
            connection.get().opts().clone()
        };
        migrate::run(opts, &self.inner.table).await?;
        self.check().await
    }

    /// Looks for what would lose events or fake duplicates: a missing or unfit claim table, other
    /// unique indexes, triggers, and settings under which a COMMIT does not outlive a power failure.
    ///
    /// [`migrate`](Self::migrate) and the first use run it.
    ///
    /// # Errors
    ///
    /// [`Schema`](StoreErrorKind::Schema), with the finding and its fix.
    pub async fn check(&self) -> Result<(), StoreError> {
        let mut connection = self.connection().await?;
        check::run(&mut connection, &self.inner.table, &self.inner.allowed).await?;
        let _ = self.inner.checked.set(());
        Ok(())
    }

    /// What every use of the table begins with.
    async fn ready(&self) -> Result<(), StoreError> {
        self.inner
            .checked
            .get_or_try_init(async || {
                let mut connection = self.connection().await?;
                check::run(&mut connection, &self.inner.table, &self.inner.allowed).await
            })
            .await
            .copied()
    }

    async fn connection(&self) -> Result<Connection, StoreError> {
        let runtime = Handle::try_current().map_err(|outside| {
            StoreError::new(StoreErrorKind::Unsupported, "a Tokio runtime is needed")
                .with_source(outside)
        })?;
        let limit = self.inner.acquire_timeout;
        match timeout(limit, self.inner.pool.get_conn()).await {
            Ok(Ok(conn)) => Ok(Connection::new(conn, runtime)),
            Ok(Err(error)) => Err(error::connecting(error, &self.inner.address)),
            Err(_) => Err(StoreError::new(
                StoreErrorKind::Unavailable,
                format!("no connection from the pool within {limit:?}"),
            )),
        }
    }
}

#[async_trait]
impl ClaimStore for MySqlStore {
    type Tx = MySqlTx;

    async fn claim(&self, event: &Event, wait: Duration) -> Result<Claim<MySqlTx>, StoreError> {
        self.ready().await?;
        let claiming = Claiming {
            statements: &self.inner.statements,
            event,
        };
        let (decision, mut connection) =
            claim::contend(&claiming, wait, || self.connection()).await?;
        match decision {
            Decision::Fresh(claimed) => Ok(Claim::Fresh(MySqlTx {
                connection,
                claimed,
            })),
            // Dropping the connection sends the ROLLBACK.
            Decision::Duplicate => Ok(Claim::Duplicate(Duplicate::new())),
            Decision::Refused(cause) => {
                if connection.roll_back().await.is_ok() {
                    drop(connection);
                    if self.is_claimed(event.source(), event.id()).await? {
                        return Ok(Claim::Duplicate(Duplicate::new()));
                    }
                }
                Err(error::statement(cause))
            }
        }
    }

    async fn commit(&self, tx: MySqlTx) -> Result<(), StoreError> {
        commit::commit(tx.connection, tx.claimed, &self.inner.statements).await
    }

    async fn rollback(&self, tx: MySqlTx) -> Result<(), StoreError> {
        let mut connection = tx.connection;
        connection.roll_back().await.map_err(|cause| {
            let error = StoreError::new(
                StoreErrorKind::Unavailable,
                "ROLLBACK was not confirmed; the connection is closed and the server rolls back",
            );
            match cause {
                Some(cause) => error.with_source(cause),
                None => error,
            }
        })
    }

    async fn prune(&self, older_than: Duration, limit: u32) -> Result<u64, StoreError> {
        self.ready().await?;
        let mut connection = self.connection().await?;
        prune::run(&mut connection, &self.inner.statements, older_than, limit).await
    }

    fn is_conflict(&self, error: &(dyn Error + 'static)) -> bool {
        error::is_conflict(error)
    }
}

#[async_trait]
impl ClaimRecords for MySqlStore {
    async fn is_claimed(&self, source: &Source, id: &EventId) -> Result<bool, StoreError> {
        self.ready().await?;
        let mut connection = self.connection().await?;
        let nonce = Nonce::random();
        let text = self.inner.statements.read(source, id, nonce);
        let rows = connection.conclude(&text, nonce).await.proven(nonce)?;
        Ok(!rows.is_empty())
    }

    async fn forget(
        &self,
        source: &Source,
        id: &EventId,
        wait: Duration,
    ) -> Result<Forget, StoreError> {
        self.ready().await?;
        let forgetting = claim::Forgetting {
            statements: &self.inner.statements,
            source,
            id,
        };
        let (found, _connection) = claim::contend(&forgetting, wait, || self.connection()).await?;
        Ok(found)
    }
}

impl fmt::Debug for MySqlStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MySqlStore")
            .field("table", &self.inner.table)
            .field("acquire_timeout", &self.inner.acquire_timeout)
            .field("allowed", &self.inner.allowed)
            .finish_non_exhaustive()
    }
}
