//! Why crediting an account, or reading a table, failed.

use onceonly::StoreError;
use onceonly_postgres::{deadpool_postgres, tokio_postgres};
use onceonly_sqlite::rusqlite;

/// What `apply` and everything else that asks the database can fail with.
///
/// The drivers' errors stay in the chain of [`source`](std::error::Error::source), where
/// `ClaimStore::is_conflict` looks for deadlocks; `#[error(transparent)]` would hide them from it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The event can't be credited, however often it is sent: people have to look at it.
    #[error("rejected: {0}")]
    Rejected(String),
    /// A failure that a test asked for.
    #[error("planted by BILLING_FAIL_FIRST")]
    Planted,
    /// onceonly's own error.
    #[error("claims: {0}")]
    Store(#[from] StoreError),
    /// PostgreSQL's.
    #[error("PostgreSQL: {0}")]
    Postgres(#[from] tokio_postgres::Error),
    /// The pool's.
    #[error("PostgreSQL: {0}")]
    Pool(#[from] deadpool_postgres::PoolError),
    /// MySQL's or MariaDB's.
    #[error("MySQL: {0}")]
    MySql(#[from] mysql_async::Error),
    /// SQLite's.
    #[error("SQLite: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// The process stops.
    #[error("stopped: {0}")]
    Stopped(#[from] tokio::task::JoinError),
}
