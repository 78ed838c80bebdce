//! Throwaway PostgreSQL, MariaDB and PgBouncer servers for the tests.
//!
//! Each value is one server with a data directory, a socket and a port of its own, durable settings
//! and TLS. Dropping it stops the server and removes the directory; when this process dies, the
//! kernel stops the server, and the next run sweeps the directory.
//!
//! Everything here blocks: call it through `spawn_blocking` from async code.

mod binaries;
mod descendants;
mod mariadb;
mod pgbouncer;
mod port;
mod postgres;
mod process;
mod run_dir;
mod server;
mod tls;

pub use binaries::{DEBIAN_PACKAGES, missing};
pub use mariadb::MariaDbServer;
pub use pgbouncer::{PgBouncer, Upstream};
pub use postgres::PostgresServer;
pub use server::Server;
pub use tls::TlsFiles;
