//! What a team can set, and what it may allow by name.

use std::fmt;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use onceonly::StoreError;
use onceonly_migrations::DEFAULT_TABLE;
use rusqlite::Connection;

use crate::SqliteStore;

type OnOpen = dyn Fn(&Connection) -> rusqlite::Result<()> + Send + Sync;

/// How a [`SqliteStore`] opens its database.
///
/// ```
/// use onceonly_sqlite::{SqliteConfig, UnsafeSetting};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("billing.db");
/// let store = SqliteConfig::new(path)
///     .table("claims")
///     .on_open(|connection| connection.pragma_update(None, "synchronous", "NORMAL"))
///     .allow_unsafe(UnsafeSetting::SynchronousNormal)
///     .open()
///     .await?;
/// store.migrate().await?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
#[must_use = "a configuration does nothing until `open()`"]
pub struct SqliteConfig {
    pub(crate) path: PathBuf,
    pub(crate) table: String,
    pub(crate) journal: Journal,
    pub(crate) readers: NonZeroU32,
    pub(crate) acquire_timeout: Duration,
    pub(crate) allowed: Vec<UnsafeSetting>,
    pub(crate) on_open: Option<Arc<OnOpen>>,
}

impl SqliteConfig {
    /// The defaults: table `processed_events`, [`Journal::Wal`], 4 reading connections, 5 s to get
    /// at the database, nothing unsafe allowed.
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self {
            path: path.as_ref().to_path_buf(),
            table: DEFAULT_TABLE.to_owned(),
            journal: Journal::Wal,
            readers: NonZeroU32::MIN.saturating_add(3),
            acquire_timeout: Duration::from_secs(5),
            allowed: Vec::new(),
            on_open: None,
        }
    }

    /// The claim table's name; any string, it is quoted. It lives in the file's main schema.
    pub fn table(mut self, table: impl Into<String>) -> Self {
        self.table = table.into();
        self
    }

    /// Which journal the file has.
    pub const fn journal(mut self, journal: Journal) -> Self {
        self.journal = journal;
        self
    }

    /// How many connections look for duplicates beside the one that writes.
    pub const fn readers(mut self, readers: NonZeroU32) -> Self {
        self.readers = readers;
        self
    }

    /// How long to wait for what is not another claim: opening the file, a reading connection, a
    /// blocking thread, and readers of a rollback journal at COMMIT.
    pub const fn acquire_timeout(mut self, timeout: Duration) -> Self {
        self.acquire_timeout = timeout;
        self
    }

    /// Accepts a setting that may lose acknowledged events on power loss. It is then not refused,
    /// and nothing more: set it in [`on_open`](Self::on_open) or in the file.
    pub fn allow_unsafe(mut self, setting: UnsafeSetting) -> Self {
        self.allowed.push(setting);
        self
    }

    /// Runs on every new connection, reading ones included, after the store's own settings: for
    /// `PRAGMA foreign_keys`, functions, collations, or keys of an encrypting build.
    ///
    /// It runs on a blocking thread and must not leave a transaction open. An error makes opening
    /// fail as [`Unavailable`](onceonly::StoreErrorKind::Unavailable).
    pub fn on_open(
        mut self,
        on_open: impl Fn(&Connection) -> rusqlite::Result<()> + Send + Sync + 'static,
    ) -> Self {
        self.on_open = Some(Arc::new(on_open));
        self
    }

    /// Opens the database; the file is created if it is not there.
    ///
    /// # Errors
    ///
    /// As [`SqliteStore::open`].
    pub async fn open(self) -> Result<SqliteStore, StoreError> {
        SqliteStore::from_config(self, None).await
    }

    pub(crate) fn allows(&self, setting: UnsafeSetting) -> bool {
        self.allowed.contains(&setting)
    }
}

impl fmt::Debug for SqliteConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteConfig")
            .field("path", &self.path)
            .field("table", &self.table)
            .field("journal", &self.journal)
            .field("readers", &self.readers)
            .field("acquire_timeout", &self.acquire_timeout)
            .field("allowed", &self.allowed)
            .field("on_open", &self.on_open.is_some())
            .finish()
    }
}

/// The file's journal (<https://sqlite.org/pragma.html#pragma_journal_mode>).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Journal {
    /// A write-ahead log; a file that has none yet gets one, for good. Readers and the writer don't
    /// block each other, and a commit is about three times as fast as with a rollback journal
    /// (measured). Needs shared memory between the processes, so one machine.
    #[default]
    Wal,
    /// Whatever the file has. With a rollback journal (`delete`, `truncate`, `persist`) a reader
    /// elsewhere delays a COMMIT; `memory` and `off` are refused unless allowed.
    Keep,
}

/// A setting that is refused unless the team allows it by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UnsafeSetting {
    /// `PRAGMA synchronous = NORMAL`: with a write-ahead log a power cut takes the last commits
    /// back, claims and effects together, though the provider was told 200. About nine times as
    /// many commits per second (measured).
    SynchronousNormal,
    /// `PRAGMA synchronous = OFF`: a power cut may corrupt the file.
    SynchronousOff,
    /// `PRAGMA journal_mode = MEMORY` or `OFF`: a crash of the process may corrupt the file.
    JournalInMemory,
}
