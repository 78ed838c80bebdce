//! An example backend of onceonly, on the embedded key-value store [redb].
//!
//! It shows what a database asks for that has **one writer at a time** and a **driver that blocks**:
//! a fair queue for the writer, a bounded wait, and every call of redb on a blocking thread that owns
//! what it works on, so that a dropped future leaves nothing behind.
//!
//! Effects go into the claim's own write transaction, which [`RedbTx`] derefs to:
//!
//! ```
//! use std::sync::Arc;
//!
//! use onceonly::{Event, Handler};
//! use onceonly_redb::RedbStore;
//! use redb::{Database, ReadableTable, TableDefinition};
//!
//! const CREDITS: TableDefinition<&str, u64> = TableDefinition::new("credits");
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("billing.redb");
//! let database = Arc::new(Database::create(path)?);
//! let handler = Handler::new(RedbStore::new(Arc::clone(&database)));
//! let event = Event::new("stripe", "evt_1")?.with_type("invoice.paid")?;
//! for delivery in ["first", "second"] {
//!     let outcome = handler
//!         .handle(&event, async |tx| {
//!             let mut credits = tx.open_table(CREDITS)?;
//!             let before = credits.get("acme")?.map_or(0, |credits| credits.value());
//!             credits.insert("acme", before + 10)?;
//!             Ok::<_, redb::Error>(())
//!         })
//!         .await?;
//!     assert_eq!(outcome.is_duplicate(), delivery == "second");
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # What holds
//!
//! - A commit is durable: redb's default, `Durability::Immediate`, can't be turned off through a
//!   [`RedbTx`].
//! - `apply` can't end its transaction. It can delete its own claim from [`PROCESSED_EVENTS`], which
//!   the commit finds out.
//! - A predicate that panicked inside redb dooms the transaction, also when `apply` caught it. So
//!   does a table that `apply` leaked, and redb keeps the writer then until the file is reopened.
//! - redb makes savepoints only before the first table is opened, and the claim opens one: there are
//!   none inside `apply`.
//! - Calling `begin_write` of the same database inside `apply` waits for itself, for ever.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod blocking;
mod error;
mod statements;
mod store;
mod transaction;
mod writer;

pub use statements::PROCESSED_EVENTS;
pub use store::RedbStore;
pub use transaction::RedbTx;
