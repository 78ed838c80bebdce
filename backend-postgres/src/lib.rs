#![doc = include_str!("../README.md")]

mod cancel;
mod check;
mod claim;
mod commit;
mod config;
mod connection;
mod connector;
mod deadline;
mod error;
mod migrate;
mod prune;
mod records;
mod savepoint;
mod settings;
mod statements;
mod store;
mod table;
#[cfg(feature = "rustls")]
mod tls;
mod token;
mod transaction;
mod unwind;
mod url;

pub use cancel::CancelStream;
pub use config::PostgresConfig;
pub use deadpool_postgres;
pub use savepoint::PostgresSavepoint;
pub use settings::{Isolation, UnsafeSetting};
pub use store::PostgresStore;
pub use tokio_postgres;
pub use transaction::PostgresTx;
