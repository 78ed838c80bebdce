//! onceonly on MySQL and MariaDB, with [`mysql_async`].
//!
//! A [`MySqlStore`] keeps claims in a table beside your own. `apply` gets the open transaction as a
//! [`MySqlTx`], which is a [`mysql_async::Conn`].
//!
//! ```no_run
//! use mysql_async::prelude::Queryable;
//! use onceonly::{Event, Handler, Outcome};
//! use onceonly_mysql::{MySqlStore, mysql_async};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let store = MySqlStore::connect("mysql://app:secret@db.internal/shop").await?;
//! store.migrate().await?;
//! let handler = Handler::new(store);
//!
//! let event = Event::new("stripe", "evt_1")?;
//! let outcome = handler
//!     .handle(&event, async |tx| {
//!         tx.exec_drop("UPDATE accounts SET credits = credits + 10 WHERE id = ?", (7,)).await
//!     })
//!     .await?;
//! assert_eq!(outcome, Outcome::Processed(()));
//! # Ok(())
//! # }
//! ```
//!
//! # How it claims
//!
//! One request opens a transaction in READ COMMITTED and inserts the key with a plain INSERT; a
//! duplicate is the error 1062 of the primary key, nothing else. One more request proves that the
//! transaction is still the same, commits it, and reads back a nonce: only that is a confirmed
//! COMMIT. Deadlocks between racing deliveries are retried inside the claim.
//!
//! # Limits
//!
//! - On a Galera cluster with several writers two nodes let the same event run at the same time, and
//!   fail one of them with a retryable [`Conflict`](onceonly::StoreErrorKind::Conflict) at the latest
//!   at the commit. Write to one node, or keep effects outside the database out of `apply`.
//! - A statement error that `apply` hides can't be seen: see [`MySqlTx`].
//! - A connection with a request in flight when its future is dropped is ended by a `KILL` from a
//!   connection outside of the pool. Where none can be made, its locks stay until the server's lock
//!   wait timeout.

mod budget;
mod check;
mod claim;
mod commit;
mod config;
mod connection;
mod error;
mod kill;
mod migrate;
mod proof;
mod prune;
mod reply;
mod statements;
mod store;
#[cfg(feature = "rustls")]
mod tls;
mod transaction;

pub use config::{MySqlConfig, UnsafeSetting};
pub use mysql_async;
pub use store::MySqlStore;
pub use transaction::{MySqlSavepoint, MySqlTx};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
