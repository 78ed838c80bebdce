//! Where a world's database is.

use onceonly_conformance::Capabilities;
use onceonly_sqlite::Journal;

pub(crate) trait Place: Send + Sync + 'static {
    const IN_MEMORY: bool;
    const JOURNAL: Journal = Journal::Wal;

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

/// A file without a write-ahead log: its readers and its COMMIT wait for each other.
pub(crate) enum RollbackJournal {}

impl Place for RollbackJournal {
    const IN_MEMORY: bool = false;
    const JOURNAL: Journal = Journal::Keep;

    fn limit(_: &mut Capabilities) {}
}
