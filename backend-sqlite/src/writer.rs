//! The process's one writing connection, and the queue for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use onceonly::StoreError;
use rusqlite::Connection;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tracing::warn;

use crate::connection::{Connector, Role};
use crate::settings;
use crate::statements::ROLLBACK;

/// The queue for the writer: first come, first served. SQLite has one writer per file, and by
/// itself gives its lock to whoever happens to ask at the right moment.
pub(crate) struct WriterQueue {
    slot: Arc<Mutex<Slot>>,
    waiting: AtomicU32,
    connector: Arc<Connector>,
}

struct Slot {
    connection: Connection,
    savepoint: Savepoint,
    /// The connection is not as it was: the next turn opens another.
    stale: bool,
}

/// By which a connection knows its claim's transaction again. The name is random, so that nothing
/// that `apply` runs can make another of that name.
pub(crate) struct Savepoint {
    pub(crate) set: String,
    pub(crate) release: String,
}

impl Slot {
    fn new(connection: Connection) -> Self {
        let name = format!("\"onceonly_{:032x}\"", rand::random::<u128>());
        Self {
            connection,
            savepoint: Savepoint {
                set: format!("SAVEPOINT {name}"),
                release: format!("RELEASE {name}"),
            },
            stale: false,
        }
    }

    /// Whether the next claim can have the connection as the last one left it.
    fn is_reusable(&self, connector: &Connector) -> bool {
        // An unfinished statement would hold a snapshot on which BEGIN IMMEDIATE fails for ever.
        self.connection.is_autocommit()
            && !self.connection.is_busy()
            && self.connection.busy_timeout(Duration::ZERO).is_ok()
            && self
                .connection
                .pragma_query_value(None, "query_only", |row| row.get::<_, i64>(0))
                .is_ok_and(|query_only| query_only == 0)
            && settings::verify(&self.connection, &connector.config).is_ok()
    }
}

impl WriterQueue {
    pub(crate) fn new(connector: Arc<Connector>, connection: Connection) -> Self {
        Self {
            slot: Arc::new(Mutex::new(Slot::new(connection))),
            waiting: AtomicU32::new(0),
            connector,
        }
    }

    /// The writer, if nobody has it and nobody queues for it.
    pub(crate) fn try_turn(&self) -> Option<Writer> {
        let slot = Arc::clone(&self.slot).try_lock_owned().ok()?;
        Some(self.writer(slot))
    }

    /// Queues for the writer. Dropping the future leaves the queue.
    pub(crate) async fn turn(&self) -> Writer {
        let slot = Arc::clone(&self.slot).lock_owned().await;
        self.writer(slot)
    }

    fn writer(&self, slot: OwnedMutexGuard<Slot>) -> Writer {
        Writer {
            slot,
            connector: Arc::clone(&self.connector),
        }
    }

    pub(crate) fn waiting(&self) -> u32 {
        self.waiting.load(Ordering::Acquire)
    }
}

/// Counts one claim as waiting for as long as it lives.
pub(crate) struct Waiting<'a>(&'a WriterQueue);

impl<'a> Waiting<'a> {
    pub(crate) fn new(queue: &'a WriterQueue) -> Self {
        queue.waiting.fetch_add(1, Ordering::AcqRel);
        Self(queue)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The right to write, and the connection to do it with.
///
/// Dropping it, wherever that happens, rolls back what is open, and only then lets the next in.
pub(crate) struct Writer {
    slot: OwnedMutexGuard<Slot>,
    connector: Arc<Connector>,
}

impl Writer {
    pub(crate) fn connection(&self) -> &Connection {
        &self.slot.connection
    }

    pub(crate) fn savepoint(&self) -> &Savepoint {
        &self.slot.savepoint
    }

    /// Opens another connection if the last one was given up. `false` when another connection
    /// holds the file's lock.
    pub(crate) fn reconnect_if_stale(&mut self) -> Result<bool, StoreError> {
        if self.slot.stale {
            match self.connector.open(Role::Write)? {
                Some(connection) => *self.slot = Slot::new(connection),
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Gives the connection up: nothing that happened on it can reach another claim.
    pub(crate) fn discard(&mut self) {
        self.slot.stale = true;
    }

    /// Rolls back what is open. `Err` leaves the connection given up, which rolls back when it is
    /// closed.
    pub(crate) fn roll_back(&mut self) -> rusqlite::Result<()> {
        let connection = &self.slot.connection;
        if connection.is_autocommit() {
            return Ok(());
        }
        let rolled_back = connection
            .prepare_cached(ROLLBACK)
            .and_then(|mut rollback| {
                rollback.execute(())?;
                Ok(())
            });
        if rolled_back.is_err() {
            self.slot.stale = true;
        }
        rolled_back
    }

    /// Replaces a given-up connection by one to nothing, so that its locks are gone now and not at
    /// the next turn.
    fn close_if_stale(&mut self) {
        if self.slot.stale
            && let Ok(nothing) = Connection::open_in_memory()
        {
            self.slot.connection = nothing;
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if let Err(error) = self.roll_back() {
            warn!(error = %error, "rollback failed, the connection is closed");
        }
        if !self.slot.is_reusable(&self.connector) {
            self.discard();
        }
        self.close_if_stale();
    }
}
