//! What the run needs of a database, beside its store.

mod mysql;
mod postgres;
mod sqlite;

use std::time::Duration;

use async_trait::async_trait;
use onceonly::{ClaimRecords, ClaimStore};

pub(crate) use self::mysql::MySql;
pub(crate) use self::postgres::Postgres;
pub(crate) use self::sqlite::Sqlite;

use crate::Failure;
use crate::evidence::Evidence;

/// A database under test. What is said to be outside goes by a raw connection of the driver.
#[async_trait]
pub(crate) trait Database: Send + Sync + 'static {
    type Store: ClaimStore + ClaimRecords + 'static;

    /// Removes what an earlier run left and makes an empty ledger, outside.
    async fn prepare(&self) -> Result<(), Failure>;

    /// A store with a pool of its own, its claim table migrated.
    async fn store(&self) -> Result<Self::Store, Failure>;

    /// Writes an effect in the claim's transaction.
    async fn effect(tx: &mut Tx<Self>, effect: Effect) -> Result<(), Failure>;

    /// Runs a statement that takes about this long in the claim's transaction.
    async fn slow(tx: &mut Tx<Self>, duration: Duration) -> Result<(), Failure>;

    /// Writes an effect outside.
    async fn effect_outside(&self, effect: Effect) -> Result<(), Failure>;

    /// Ends one session that a store has a transaction open in, outside. Fails where there are no
    /// sessions.
    async fn kill_one(&self) -> Result<(), Failure>;

    /// Reads ledger and claims, outside.
    async fn evidence(&self) -> Result<Evidence, Failure>;
}

/// The transaction of a database's store.
pub(crate) type Tx<D> = <<D as Database>::Store as ClaimStore>::Tx;

/// A row of the ledger.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effect {
    pub(crate) event: u32,
    pub(crate) delivery: u64,
}

impl Effect {
    fn row(self) -> Result<(i64, i64), Failure> {
        Ok((self.event.into(), self.delivery.try_into()?))
    }
}

/// Connections of each handler's pool: fewer than deliveries are under way, so that they queue.
const CONNECTIONS: usize = 12;
