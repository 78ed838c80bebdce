//! The store.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use deadpool_postgres::Pool;
use onceonly::{
    Claim, ClaimRecords, ClaimStore, Event, EventId, Forget, Source, StoreError, StoreErrorKind,
};
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::config::PostgresConfig;
use crate::connection::Connection;
use crate::connector::Canceller;
use crate::error::no_connection;
use crate::statements::{Statements, quote};
use crate::transaction::PostgresTx;
use crate::{check, claim, commit, error, migrate, prune, records};

/// Claims in a table of a PostgreSQL database.
///
/// A clone shares the pool. See the [crate](crate) for a complete example.
#[derive(Clone)]
pub struct PostgresStore {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) config: PostgresConfig,
    pub(crate) statements: Statements,
    pub(crate) pool: Pool,
    canceller: Arc<Canceller>,
    checked: AtomicBool,
    /// Whether COMMIT may wait for a standby, as the check found.
    pub(crate) has_standbys: AtomicBool,
}

impl PostgresStore {
    /// Opens a pool on this URL with the settings of [`PostgresConfig::new`].
    ///
    /// # Errors
    ///
    /// As [`PostgresConfig::connect`].
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        PostgresConfig::new().connect(url).await
    }

    /// Uses a pool that you have already, with the settings of [`PostgresConfig::new`].
    ///
    /// For another table, or a pool whose connections use TLS, see [`PostgresConfig::from_pool`].
    ///
    /// # Errors
    ///
    /// As [`PostgresConfig::from_pool`].
    pub fn from_pool(pool: Pool) -> Result<Self, StoreError> {
        PostgresConfig::new().from_pool(pool)
    }

    /// The pool, for the rest of the program.
    #[must_use]
    pub fn pool(&self) -> &Pool {
        &self.shared.pool
    }

    /// Creates the claim table, or brings it up to date, and then [checks](Self::check) it.
    ///
    /// Ten instances may call it at once; what was done before is not done again. It records what
    /// it did in `<table>_migrations`. A table that your own tool made from
    /// `migrations/postgres/*.sql`, without that record, is accepted as it is. It needs the right to
    /// create tables only when there is something to do.
    ///
    /// # Errors
    ///
    /// [`Schema`](StoreErrorKind::Schema) when an applied migration was changed since, when the
    /// schema declares that this version is too old for it, or as `check` says;
    /// [`Unavailable`](StoreErrorKind::Unavailable) when the database can't be reached. It all
    /// happens in one transaction, so that a failure or a dropped future leaves nothing behind.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        migrate::migrate(self).await?;
        self.check().await
    }

    /// Refuses a claim table that could fake or miss a duplicate, and settings of the server with
    /// which it could forget events that it acknowledged.
    ///
    /// The first claim of a store does the same once.
    ///
    /// # Errors
    ///
    /// [`Schema`](StoreErrorKind::Schema), naming what is unfit and its fix; see
    /// [`UnsafeSetting`](crate::UnsafeSetting) for what may be allowed.
    pub async fn check(&self) -> Result<(), StoreError> {
        let connection = self.acquire().await?;
        check::check(self, connection).await?.give_back();
        Ok(())
    }

    pub(crate) fn new(config: PostgresConfig, pool: Pool, canceller: Canceller) -> Self {
        let table = quote(&config.table);
        let qualified = match &config.schema {
            Some(schema) => format!("{}.{table}", quote(schema)),
            None => table,
        };
        Self {
            shared: Arc::new(Shared {
                statements: Statements::new(qualified, config.isolation),
                config,
                pool,
                canceller: Arc::new(canceller),
                checked: AtomicBool::new(false),
                has_standbys: AtomicBool::new(true),
            }),
        }
    }

    pub(crate) async fn acquire(&self) -> Result<Connection, StoreError> {
        let Ok(runtime) = Handle::try_current() else {
            return Err(StoreError::new(
                StoreErrorKind::Unsupported,
                "there is no tokio runtime here",
            ));
        };
        let limit = self.shared.config.acquire_timeout;
        let object = timeout(limit, self.shared.pool.get())
            .await
            .map_err(|_| {
                StoreError::new(
                    StoreErrorKind::Unavailable,
                    format!("no connection within {limit:?}; is the pool too small?"),
                )
            })?
            .map_err(no_connection)?;
        Ok(Connection::new(
            object,
            Arc::clone(&self.shared.canceller),
            runtime,
        ))
    }

    /// A connection, once the first one of this store passed the check. Racing first calls each
    /// check on their own connection: none waits for another's.
    pub(crate) async fn ready(&self) -> Result<Connection, StoreError> {
        let connection = self.acquire().await?;
        if self.shared.checked.load(Ordering::Acquire) {
            return Ok(connection);
        }
        let connection = check::check(self, connection).await?;
        self.shared.checked.store(true, Ordering::Release);
        Ok(connection)
    }
}

#[async_trait]
impl ClaimStore for PostgresStore {
    type Tx = PostgresTx;

    async fn claim(&self, event: &Event, wait: Duration) -> Result<Claim<PostgresTx>, StoreError> {
        claim::claim(self, event, wait).await
    }

    async fn commit(&self, tx: PostgresTx) -> Result<(), StoreError> {
        commit::commit(self, tx).await
    }

    async fn rollback(&self, tx: PostgresTx) -> Result<(), StoreError> {
        tx.roll_back().await
    }

    async fn prune(&self, older_than: Duration, limit: u32) -> Result<u64, StoreError> {
        prune::prune(self, older_than, limit).await
    }

    fn is_conflict(&self, error: &(dyn Error + 'static)) -> bool {
        error::is_conflict(error)
    }
}

#[async_trait]
impl ClaimRecords for PostgresStore {
    async fn is_claimed(&self, source: &Source, id: &EventId) -> Result<bool, StoreError> {
        records::is_claimed(self, source, id).await
    }

    async fn forget(
        &self,
        source: &Source,
        id: &EventId,
        wait: Duration,
    ) -> Result<Forget, StoreError> {
        records::forget(self, source, id, wait).await
    }
}

// Neither pool nor connector: they know the password.
impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore")
            .field("config", &self.shared.config)
            .finish_non_exhaustive()
    }
}
