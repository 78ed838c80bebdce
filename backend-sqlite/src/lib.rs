//! onceonly on SQLite, with rusqlite.
//!
//! Claims live in the same file as the data that your webhooks change, so that claim and effects
//! commit together or not at all. The transaction that `apply` gets is a
//! [`rusqlite::Connection`], and SQLite comes along (`bundled`): there is no server to run.
//!
//! ```
//! use onceonly::{Event, Handler, Outcome};
//! use onceonly_sqlite::SqliteStore;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("billing.db");
//! let store = SqliteStore::open(&path).await?;
//! store.migrate().await?;
//! let handler = Handler::new(store);
//!
//! let event = Event::new("stripe", "evt_1")?.with_type("invoice.paid")?;
//! let outcome = handler
//!     .handle(&event, async |tx| {
//!         tx.execute_batch("CREATE TABLE ledger (account TEXT, amount INTEGER)")?;
//!         tx.execute("INSERT INTO ledger VALUES (?1, ?2)", ("acme", 10))
//!     })
//!     .await?;
//! assert_eq!(outcome, Outcome::Processed(1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # One writer
//!
//! An SQLite file has one writer at a time. A claim takes it (`BEGIN IMMEDIATE`) and holds it until
//! its commit or rollback, whatever its key; so keep `apply` short. Inside a process the claims
//! queue, first come, first served; across processes they take turns by the file's lock, in no order
//! (measured: of two processes that never paused, each had about half of the time). `wait` bounds
//! both. A duplicate of a committed event is found by a reading connection and does not
//! queue. This also means that no deadlock and no serialization failure can happen.
//!
//! # What differs from a server
//!
//! - `InFlight` may mean that *another* event holds the writer.
//! - A statement that fails inside `apply` does not doom the transaction: an `apply` that hides the
//!   error is processed (rule R10).
//! - There is no connection to lose; an I/O error or a full disk at COMMIT is
//!   [`CommitUnknown`](onceonly::StoreErrorKind::CommitUnknown).
//! - Network file systems are not supported.
//! - Durability is that of the disk: `synchronous = FULL` (and `fullfsync` on macOS) unless
//!   [another setting is allowed by name](UnsafeSetting).

mod blocking;
mod check;
mod claim;
mod commit;
mod config;
mod connection;
mod error;
mod interrupt;
mod memory;
mod migrate;
mod opening;
mod readers;
mod records;
mod retry;
mod savepoint;
mod schema;
mod settings;
mod statements;
mod store;
mod transaction;
mod turn;
mod writer;

pub use config::{Journal, SqliteConfig, UnsafeSetting};
pub use rusqlite;
pub use savepoint::SqliteSavepoint;
pub use store::SqliteStore;
pub use transaction::SqliteTx;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
