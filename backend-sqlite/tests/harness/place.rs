//! Where a world's database is.

use onceonly_conformance::Capabilities;

pub(crate) trait Place: Send + Sync + 'static {
    const IN_MEMORY: bool;

    /// Takes away what a database in this place can't show.
    fn limit(capabilities: &mut Capabilities);
}

pub(crate) enum File {}

impl Place for File {
    const IN_MEMORY: bool = false;

    fn limit(_: &mut Capabilities) {}
}

/// [`SqliteStore::in_memory`](onceonly_sqlite::SqliteStore::in_memory): always migrated, opened once.
pub(crate) enum Memory {}

impl Place for Memory {
    const IN_MEMORY: bool = true;

    fn limit(capabilities: &mut Capabilities) {
        capabilities.second_store = false;
        capabilities.migrations = false;
        capabilities.checks = false;
    }
}
