//! Where a throwaway database lives.

use std::io;
use std::path::Path;

use onceonly::{StoreError, StoreErrorKind};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::config::{SqliteConfig, UnsafeSetting};

/// Linux keeps this directory in memory.
const SHARED_MEMORY: &str = "/dev/shm";

/// A new directory, in memory where the system has such a place.
pub(crate) fn directory() -> Result<TempDir, StoreError> {
    let prefix = "onceonly-";
    let in_memory = |directory: &Path| -> io::Result<TempDir> {
        tempfile::Builder::new()
            .prefix(prefix)
            .tempdir_in(directory)
    };
    in_memory(Path::new(SHARED_MEMORY))
        .or_else(|_| tempfile::Builder::new().prefix(prefix).tempdir())
        .map_err(|error| {
            StoreError::new(
                StoreErrorKind::Unavailable,
                "no directory for a throwaway database can be made; check TMPDIR",
            )
            .with_source(error)
        })
}

/// Nothing of it is to outlive the process, so nothing is synced.
pub(crate) fn config(directory: &TempDir) -> SqliteConfig {
    SqliteConfig::new(directory.path().join("onceonly.db"))
        .on_open(|connection: &Connection| connection.pragma_update(None, "synchronous", "OFF"))
        .allow_unsafe(UnsafeSetting::SynchronousOff)
}
