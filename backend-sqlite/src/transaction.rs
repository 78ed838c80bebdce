//! The native transaction that is handed to `apply`.

use std::fmt;
use std::mem;
use std::ops::Deref;
use std::sync::Arc;

use onceonly::{ClaimFate, StoreError, StoreErrorKind};
use rusqlite::Connection;

use crate::blocking::blocking;
use crate::claim::Identity;
use crate::interrupt::{Interrupt, Running};
use crate::savepoint::SqliteSavepoint;
use crate::statements::Statements;
use crate::writer::Writer;

/// The open transaction of a claim: a [`rusqlite::Connection`] whose statements are committed
/// together with the claim. Dropping it rolls back, at once and on the spot, and lets the next
/// claim in.
///
/// It is the process's one writer: other events queue until it ends. Statements block the thread
/// that they run on; short ones may run in async code as they are, long ones belong into
/// [`run`](Self::run).
///
/// It is `Send`, so a future that holds it is, as long as no `&Connection` and no `Statement` lives
/// across an `.await`: get them, use them, and drop them between two awaits.
///
/// What SQLite asks of `apply`:
///
/// - A failed statement leaves the transaction alive. An `apply` that hides the error and returns
///   `Ok` is processed without that statement; SQLite gives no way to see it (rule R10).
/// - COMMIT, ROLLBACK, `OR ROLLBACK`, `RAISE(ROLLBACK)` and a full disk end the transaction, and
///   statements after that are committed one by one (measured). The commit then fails as
///   [`TransactionEnded`](StoreErrorKind::TransactionEnded).
/// - Effects belong in the claim's own file. Writes to an attached one are refused at the commit,
///   unless both have rollback journals: SQLite would not commit them atomically.
/// - Settings that `apply` changes stay on the connection for later claims, except those on which
///   the guarantees rest (`synchronous`, `journal_mode`, `locking_mode`, `query_only`, the busy
///   timeout), after which it is opened anew.
///
/// ```
/// use onceonly::{Claim, ClaimStore, Event};
/// use onceonly_sqlite::SqliteStore;
/// use std::time::Duration;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let store = SqliteStore::in_memory().await?;
/// let event = Event::new("stripe", "evt_1")?;
/// if let Claim::Fresh(tx) = store.claim(&event, Duration::from_secs(2)).await? {
///     tx.execute_batch("CREATE TABLE ledger (account TEXT, amount INTEGER)")?;
///     tx.execute("INSERT INTO ledger VALUES (?1, ?2)", ("acme", 10))?;
///     store.commit(tx).await?;
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a transaction that is dropped is rolled back"]
pub struct SqliteTx {
    state: State,
    claim: Identity,
    statements: Arc<Statements>,
}

enum State {
    Open(Writer),
    /// The writer is with [`SqliteTx::run`], or went with it. Statements meet an empty database.
    Away(Connection),
}

/// Dropped in this order, also when the work panics: an interrupt can't reach the next claim.
struct Lent {
    running: Running,
    writer: Writer,
}

impl SqliteTx {
    pub(crate) const fn new(writer: Writer, claim: Identity, statements: Arc<Statements>) -> Self {
        Self {
            state: State::Open(writer),
            claim,
            statements,
        }
    }

    /// Sets a savepoint. Dropping it undoes what ran since; the claim and what ran before stay.
    ///
    /// # Errors
    ///
    /// SQLite's, when there is no transaction to set it in; nothing has changed then.
    pub fn savepoint(&mut self) -> rusqlite::Result<SqliteSavepoint<'_>> {
        SqliteSavepoint::new(self)
    }

    /// Runs `work` in this transaction on a blocking thread, for statements that take long.
    ///
    /// When this future is dropped, the statement that runs is interrupted
    /// (`sqlite3_interrupt`), the transaction is rolled back as soon as `work` returns, and the
    /// next claim gets the writer; this value can't be committed any more. A panic in `work` rolls
    /// back and goes on in the caller.
    ///
    /// ```
    /// # use onceonly::{Claim, ClaimStore, Event, Handler};
    /// # use onceonly_sqlite::SqliteStore;
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// # let handler = Handler::new(SqliteStore::in_memory().await?);
    /// # let event = Event::new("stripe", "evt_1")?;
    /// let outcome = handler
    ///     .handle(&event, async |tx| {
    ///         let count = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 9999)
    ///                      SELECT count(*) FROM n";
    ///         tx.run(move |db| db.query_row(count, (), |row| row.get::<_, i64>(0))).await
    ///     })
    ///     .await?;
    /// let counted = outcome.processed().unwrap();
    /// assert_eq!(counted?, 9999);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Unavailable`](StoreErrorKind::Unavailable) outside a tokio runtime or while it shuts down,
    /// [`TransactionEnded`](StoreErrorKind::TransactionEnded) when an earlier `run` was dropped.
    /// The transaction is rolled back in each case. What `work` returns comes back as it is.
    pub async fn run<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&Connection) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let stand_in = Connection::open_in_memory()
            .map_err(|error| crate::error::failed("opening a stand-in connection", error))?;
        let writer = match mem::replace(&mut self.state, State::Away(stand_in)) {
            State::Open(writer) => writer,
            State::Away(_) => return Err(gone()),
        };
        let (interrupt, running) = Interrupt::new(writer.connection());
        let lent = Lent { running, writer };
        let worked = blocking(move || {
            let lent = lent;
            let value = work(lent.writer.connection());
            let Lent { running, writer } = lent;
            drop(running);
            (value, writer)
        });
        let (value, writer) = worked.await?;
        interrupt.disarm();
        self.state = State::Open(writer);
        Ok(value)
    }

    /// The parts, for COMMIT and ROLLBACK.
    pub(crate) fn into_parts(self) -> Result<(Writer, Identity, Arc<Statements>), StoreError> {
        match self.state {
            State::Open(writer) => Ok((writer, self.claim, self.statements)),
            State::Away(_) => Err(gone()),
        }
    }
}

fn gone() -> StoreError {
    StoreError::new(
        StoreErrorKind::TransactionEnded {
            claim: ClaimFate::Absent,
        },
        "a run() inside apply was dropped before it ended, which rolls back",
    )
}

impl Deref for SqliteTx {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        match &self.state {
            State::Open(writer) => writer.connection(),
            State::Away(stand_in) => stand_in,
        }
    }
}

impl fmt::Debug for SqliteTx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteTx")
            .field("source", &self.claim.source)
            .field("event_id", &self.claim.id)
            .finish_non_exhaustive()
    }
}
