//! The native transaction that `apply` gets.

use std::fmt;
use std::ops::{Deref, DerefMut};

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use onceonly::{EventId, Source};

use crate::connection::Connection;
use crate::proof::Token;

/// The open transaction that holds a claim: a [`mysql_async::Conn`] on which to run the effects.
///
/// It runs in READ COMMITTED, with the session's own lock wait. Dropping it rolls back, in the
/// background on the runtime that it was claimed on; the connection goes back to its pool once the
/// server confirmed that, and is closed otherwise.
///
/// What the store can and can't see at the commit:
///
/// - A transaction that was ended or replaced (COMMIT, ROLLBACK, `start_transaction`, DDL, a deadlock
///   whose error was hidden) is
///   [`TransactionEnded`](onceonly::StoreErrorKind::TransactionEnded).
/// - A failed statement leaves a transaction of MySQL alive. If `apply` hides its error (a duplicate
///   key 1062, a lock wait timeout 1205) and returns `Ok`, the event is processed without that
///   statement. Return the error instead.
/// - A statement's future that is dropped half-way, for example by a timeout around it, leaves its
///   reply unread, and the driver gives it to the next statement. Return an error then. If `apply`
///   goes on, the commit is [`CommitUnknown`](onceonly::StoreErrorKind::CommitUnknown).
#[must_use = "a transaction that is dropped is rolled back"]
pub struct MySqlTx {
    pub(crate) connection: Connection,
    pub(crate) claimed: Claimed,
}

/// Whose claim it is.
pub(crate) struct Claimed {
    pub(crate) source: Source,
    pub(crate) id: EventId,
    pub(crate) token: Token,
}

impl MySqlTx {
    /// Sets a savepoint to return to.
    ///
    /// # Errors
    ///
    /// As any statement. Nothing has changed then.
    pub async fn savepoint(&mut self) -> Result<MySqlSavepoint, mysql_async::Error> {
        let savepoint = MySqlSavepoint {
            name: format!("onceonly_apply_{}", Token::random()),
        };
        self.query_drop(format!("SAVEPOINT {}", savepoint.name))
            .await?;
        Ok(savepoint)
    }

    /// Undoes what was done since `savepoint`, which may be returned to again.
    ///
    /// # Errors
    ///
    /// As any statement; 1305 when the savepoint is not of this transaction.
    pub async fn rollback_to(
        &mut self,
        savepoint: &MySqlSavepoint,
    ) -> Result<(), mysql_async::Error> {
        self.query_drop(format!("ROLLBACK TO SAVEPOINT {}", savepoint.name))
            .await
    }

    /// Forgets a savepoint and keeps what was done since.
    ///
    /// # Errors
    ///
    /// As [`rollback_to`](Self::rollback_to).
    pub async fn release(&mut self, savepoint: MySqlSavepoint) -> Result<(), mysql_async::Error> {
        self.query_drop(format!("RELEASE SAVEPOINT {}", savepoint.name))
            .await
    }
}

impl Deref for MySqlTx {
    type Target = Conn;

    fn deref(&self) -> &Conn {
        self.connection.get()
    }
}

impl DerefMut for MySqlTx {
    fn deref_mut(&mut self) -> &mut Conn {
        self.connection.get_mut()
    }
}

impl fmt::Debug for MySqlTx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MySqlTx")
            .field("source", &self.claimed.source)
            .field("id", &self.claimed.id)
            .field("session", &self.id())
            .finish_non_exhaustive()
    }
}

/// A point in a [`MySqlTx`] to return to.
#[derive(Debug)]
pub struct MySqlSavepoint {
    name: String,
}
