//! A nested transaction inside `apply`.

use std::fmt;
use std::ops::Deref;

use rusqlite::Connection;

use crate::SqliteTx;

// One name serves all depths: RELEASE and ROLLBACK TO mean the innermost savepoint of that name.
const SET: &str = "SAVEPOINT onceonly_nested";
const RELEASE: &str = "RELEASE onceonly_nested";
const UNDO: &str = "ROLLBACK TO onceonly_nested";

/// A savepoint inside a claim's transaction. Dropping it undoes what ran since it was set.
///
/// ```
/// use onceonly::{Event, Handler};
/// use onceonly_sqlite::SqliteStore;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let handler = Handler::new(SqliteStore::in_memory().await?);
/// let outcome = handler
///     .handle(&Event::new("stripe", "evt_1")?, async |tx| {
///         tx.execute_batch("CREATE TABLE ledger (amount INTEGER)")?;
///         let attempt = tx.savepoint()?;
///         attempt.execute("INSERT INTO ledger VALUES (10)", ())?;
///         attempt.rollback()?;
///         tx.query_row("SELECT count(*) FROM ledger", (), |row| row.get::<_, i64>(0))
///     })
///     .await?;
/// assert_eq!(outcome.processed(), Some(0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a savepoint that is dropped is rolled back"]
pub struct SqliteSavepoint<'tx> {
    // Not a `&Connection`, with which a future could not be `Send`.
    tx: &'tx mut SqliteTx,
    open: bool,
}

impl<'tx> SqliteSavepoint<'tx> {
    pub(crate) fn new(tx: &'tx mut SqliteTx) -> rusqlite::Result<Self> {
        // Outside a transaction SAVEPOINT would open one, and its release would commit.
        if tx.is_autocommit() {
            return Err(rusqlite::Error::SqliteFailure(
                rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_MISUSE),
                Some("the claim's transaction has ended, so no savepoint can be set".to_owned()),
            ));
        }
        tx.execute_batch(SET)?;
        Ok(Self { tx, open: true })
    }

    /// Sets a savepoint inside this one.
    ///
    /// # Errors
    ///
    /// As [`SqliteTx::savepoint`].
    pub fn savepoint(&mut self) -> rusqlite::Result<SqliteSavepoint<'_>> {
        SqliteSavepoint::new(self.tx)
    }

    /// Keeps what ran since; it is committed or rolled back with the claim.
    ///
    /// # Errors
    ///
    /// SQLite's, when the savepoint is gone; what ran since is undone where it still can be.
    pub fn release(mut self) -> rusqlite::Result<()> {
        self.tx.execute_batch(RELEASE)?;
        self.open = false;
        Ok(())
    }

    /// Undoes what ran since.
    ///
    /// # Errors
    ///
    /// SQLite's, when the savepoint is gone.
    pub fn rollback(mut self) -> rusqlite::Result<()> {
        self.open = false;
        self.undo()
    }

    fn undo(&self) -> rusqlite::Result<()> {
        self.tx.execute_batch(UNDO)?;
        self.tx.execute_batch(RELEASE)
    }
}

impl Deref for SqliteSavepoint<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.tx
    }
}

impl Drop for SqliteSavepoint<'_> {
    fn drop(&mut self) {
        if self.open {
            // It fails only where the savepoint is gone, which the commit finds.
            let _ = self.undo();
        }
    }
}

impl fmt::Debug for SqliteSavepoint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteSavepoint")
            .field("tx", &*self.tx)
            .finish_non_exhaustive()
    }
}
