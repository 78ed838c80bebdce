//! The SQL schema of onceonly, numbered and checksummed, for PostgreSQL, MySQL/MariaDB and SQLite.
//!
//! Each backend's `migrate()` applies these files. A team with a migration tool of its own copies
//! them from `migrations/` in the repository, one folder per database: they are plain SQL with the
//! default names.

mod migration;

pub use migration::{DEFAULT_TABLE, Migration};

/// For PostgreSQL.
pub const POSTGRES: &[Migration] = &[Migration::new(
    1,
    1,
    "claims",
    include_str!("../postgres/0001_claims.sql"),
    '"',
)];

/// For MySQL and MariaDB.
pub const MYSQL: &[Migration] = &[Migration::new(
    1,
    1,
    "claims",
    include_str!("../mysql/0001_claims.sql"),
    '`',
)];

/// For SQLite.
pub const SQLITE: &[Migration] = &[Migration::new(
    1,
    1,
    "claims",
    include_str!("../sqlite/0001_claims.sql"),
    '"',
)];

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
