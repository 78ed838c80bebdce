//! Opening a store.

use std::path::Path;
use std::sync::Arc;

use onceonly::{StoreError, StoreErrorKind};
use tempfile::TempDir;
use tokio::sync::OnceCell;

use crate::blocking::{blocking, bounded};
use crate::connection::Connector;
use crate::readers::Readers;
use crate::retry::Retry;
use crate::statements::Statements;
use crate::store::Shared;
use crate::writer::WriterQueue;
use crate::{SqliteConfig, SqliteStore, memory};

impl SqliteStore {
    /// Opens the database in `path` with the defaults of [`SqliteConfig`]; the file is created if
    /// it is not there, and gets a write-ahead log.
    ///
    /// # Errors
    ///
    /// [`Unavailable`](StoreErrorKind::Unavailable) when the directory is missing, the file is
    /// read-only or stays locked, [`Schema`](StoreErrorKind::Schema) when it is not an SQLite
    /// database. A dropped future may have created the file.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        SqliteConfig::new(path).open().await
    }

    /// A new, migrated, empty database that goes with the last clone of the store and the last
    /// open transaction: for tests.
    ///
    /// It behaves as a file does, and can be read from outside at [`path`](Self::path) while claims
    /// are open, because it is one: with a write-ahead log, never synced, in `/dev/shm` on Linux
    /// and else in the system's temporary directory. SQLite's own databases in memory can't do
    /// that: `:memory:` has one connection, `vfs=memdb` no write-ahead log, so that readers are
    /// refused while a claim is open, and a shared cache answers `SQLITE_LOCKED` (measured). A
    /// killed process leaves the directory `onceonly-…` behind, and a container may limit
    /// `/dev/shm` (Docker: 64 MB unless told otherwise).
    ///
    /// # Errors
    ///
    /// [`Unavailable`](StoreErrorKind::Unavailable) when there is no room for it.
    pub async fn in_memory() -> Result<Self, StoreError> {
        let directory = blocking(memory::directory).await??;
        let store = Self::from_config(memory::config(&directory), Some(directory)).await?;
        store.migrate().await?;
        Ok(store)
    }

    pub(crate) async fn from_config(
        config: SqliteConfig,
        directory: Option<TempDir>,
    ) -> Result<Self, StoreError> {
        let limit = config.acquire_timeout;
        let statements = Arc::new(Statements::new(&config.table));
        let connector = Arc::new(Connector::new(config, directory));
        let mut retry = Retry::within(limit);
        let connection = loop {
            let creator = Arc::clone(&connector);
            match bounded(limit, move || creator.create()).await?? {
                Some(connection) => break connection,
                None if retry.pause().await => {}
                None => {
                    return Err(StoreError::new(
                        StoreErrorKind::Unavailable,
                        format!("the file stayed locked for {limit:?} while it was opened"),
                    ));
                }
            }
        };
        Ok(Self {
            shared: Arc::new(Shared {
                queue: WriterQueue::new(Arc::clone(&connector), connection),
                readers: Readers::new(Arc::clone(&connector)),
                checked: OnceCell::new(),
                statements,
                connector,
            }),
        })
    }

    /// Where the file is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.shared.connector.config.path
    }

    /// How many claims of this process wait for the writer right now.
    #[must_use]
    pub fn waiting(&self) -> u32 {
        self.shared.queue.waiting()
    }
}
