//! What billing asks of a database: one line of the ledger in the claim's transaction, and dead
//! letters outside of it.

mod mysql;
mod postgres;
mod sqlite;

use std::fmt;

use async_trait::async_trait;
use onceonly::{ClaimStore, Event, StoreError};
use serde::Serialize;

pub use mysql::MySql;
pub use postgres::Postgres;
pub use sqlite::Sqlite;

use crate::dead_letters::DeadLetter;
use crate::delivery::Credit;
use crate::failure::Failure;

/// The transaction that a claim is in.
pub type Tx<D> = <<D as Database>::Store as ClaimStore>::Tx;

/// A database that billing runs on. Yours is one; billing has three to show each.
#[async_trait]
pub trait Database: fmt::Debug + Send + Sync + 'static {
    /// Where the claims are. Clones share a pool.
    type Store: ClaimStore + Clone + fmt::Debug + 'static;

    /// The store of claims.
    fn store(&self) -> Self::Store;

    /// Makes the claim table, the ledger and the dead letters, unless they are there.
    async fn migrate(&self) -> Result<(), Failure>;

    /// Whether events could be claimed now.
    async fn check(&self) -> Result<(), StoreError>;

    /// Credits an account *inside the claim's transaction*.
    async fn credit(tx: &mut Tx<Self>, event: &Event, credit: &Credit) -> Result<(), Failure>;

    /// The lines of the ledger, oldest first.
    async fn entries(&self) -> Result<Vec<Entry>, Failure>;

    /// Keeps a failed delivery, or counts another failure of one that is kept.
    async fn keep_dead_letter(&self, letter: &DeadLetter) -> Result<(), Failure>;

    /// The letters to replay, those that rested longest first.
    async fn dead_letters(&self) -> Result<Vec<DeadLetter>, Failure>;

    /// Removes the letter of an event that is processed by now.
    async fn remove_dead_letter(&self, event: &Event) -> Result<(), Failure>;
}

/// A line of the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Whose credits, and how many.
    #[serde(flatten)]
    pub credit: Credit,
    /// Who sent the event.
    pub source: String,
    /// The event's id.
    pub event_id: String,
}
