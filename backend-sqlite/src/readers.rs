//! Connections that only look.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use onceonly::{StoreError, StoreErrorKind};
use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::blocking::{blocking, runtime};
use crate::connection::{Connector, Role};
use crate::error::{failed, is_busy};
use crate::retry::Retry;

/// A small pool. With a write-ahead log a reader sees the last commit and waits for nobody.
pub(crate) struct Readers {
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<Connection>>,
    connector: Arc<Connector>,
}

impl Readers {
    pub(crate) fn new(connector: Arc<Connector>) -> Arc<Self> {
        let size = connector.config.readers.get() as usize;
        Arc::new(Self {
            permits: Arc::new(Semaphore::new(size.min(Semaphore::MAX_PERMITS))),
            idle: Mutex::new(Vec::new()),
            connector,
        })
    }

    /// Runs `look` on a reading connection, again while the file is locked, for at most the
    /// configuration's `acquire_timeout`.
    pub(crate) async fn look<T: Send + 'static>(
        self: &Arc<Self>,
        doing: &'static str,
        look: impl Fn(&Connection) -> rusqlite::Result<T> + Send + Sync + 'static,
    ) -> Result<T, StoreError> {
        runtime()?;
        let limit = self.connector.config.acquire_timeout;
        let look = Arc::new(look);
        let mut retry = Retry::within(limit);
        let looking = async {
            loop {
                let readers = Arc::clone(self);
                let permit = Arc::clone(&self.permits).acquire_owned().await;
                let permit = permit.map_err(|error| {
                    StoreError::new(StoreErrorKind::Unavailable, "the store is closed")
                        .with_source(error)
                })?;
                let look = Arc::clone(&look);
                let looked = blocking(move || readers.try_look(permit, doing, &*look)).await??;
                match looked {
                    Some(value) => return Ok(value),
                    None if retry.pause().await => {}
                    None => return Err(locked(doing)),
                }
            }
        };
        match timeout(limit, looking).await {
            Ok(looked) => looked,
            Err(_) => Err(locked(doing)),
        }
    }

    /// `None` when another connection holds the file's lock.
    fn try_look<T>(
        &self,
        _permit: OwnedSemaphorePermit,
        doing: &str,
        look: &impl Fn(&Connection) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, StoreError> {
        let idle = self.idle().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => match self.connector.open(Role::Read)? {
                Some(connection) => connection,
                None => return Ok(None),
            },
        };
        match look(&connection) {
            Ok(value) => {
                self.idle().push(connection);
                Ok(Some(value))
            }
            Err(error) if is_busy(&error) => {
                self.idle().push(connection);
                Ok(None)
            }
            Err(error) => Err(failed(doing, error)),
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn locked(doing: &str) -> StoreError {
    StoreError::new(
        StoreErrorKind::Unavailable,
        format!("{doing}: no reading connection, blocking thread or lock in time"),
    )
}
