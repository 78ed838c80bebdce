//! The ledger and the dead letters, on each database.

mod mysql;
mod postgres;
mod sqlite;

use async_trait::async_trait;
use onceonly::{ClaimStore, Event, StoreError};

pub use mysql::MySql;
pub use postgres::Postgres;
pub use sqlite::Sqlite;

use crate::delivery::{Credit, DeadLetter, Entry};

/// The transaction that a claim is in.
pub type Tx<D> = <<D as Database>::Store as ClaimStore>::Tx;

/// A database that billing runs on.
#[async_trait]
pub trait Database: Send + Sync + 'static {
    /// Where the claims are. Clones share a pool.
    type Store: ClaimStore + Clone + 'static;

    /// The store of claims.
    fn store(&self) -> Self::Store;

    /// Makes the claim table, the ledger and the dead letters, unless they are there.
    async fn migrate(&self) -> Result<(), Failure>;

    /// Credits an account *inside the claim's transaction*.
    async fn credit(tx: &mut Tx<Self>, event: &Event, credit: &Credit) -> Result<(), Failure>;

    /// All lines of the ledger, oldest first.
    async fn entries(&self) -> Result<Vec<Entry>, Failure>;

    /// Keeps a failed delivery, or counts another failure of one that is kept.
    async fn bury(&self, letter: &DeadLetter) -> Result<(), Failure>;

    /// All failed deliveries.
    async fn dead_letters(&self) -> Result<Vec<DeadLetter>, Failure>;

    /// Removes a delivery that is processed by now.
    async fn remove_dead_letter(&self, source: &str, event_id: &str) -> Result<(), Failure>;
}

/// Why crediting, or reading the tables, failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// An invoice over nothing or less; sending it again can't help.
    #[error("an amount of {0} can't be credited")]
    Amount(i64),
    /// A failure that a test asked for.
    #[error("planted by BILLING_FAIL_FIRST")]
    Planted,
    /// onceonly's own error.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// PostgreSQL's.
    #[error(transparent)]
    Postgres(#[from] onceonly_postgres::tokio_postgres::Error),
    /// The pool's.
    #[error(transparent)]
    Pool(#[from] onceonly_postgres::deadpool_postgres::PoolError),
    /// MySQL's.
    #[error(transparent)]
    MySql(#[from] mysql_async::Error),
    /// SQLite's.
    #[error(transparent)]
    Sqlite(#[from] onceonly_sqlite::rusqlite::Error),
    /// A task that was stopped.
    #[error(transparent)]
    Task(#[from] tokio::task::JoinError),
}
