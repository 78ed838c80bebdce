//! The open transaction of a claim.

use std::fmt;
use std::ops::Deref;

use onceonly::{Event, EventId, Source, StoreError, StoreErrorKind};
use tokio_postgres::{Client, Error, Statement};

use crate::connection::Connection;
use crate::savepoint::PostgresSavepoint;
use crate::token::ClaimToken;
use crate::unwind::{End, GRACE, unwind};

/// The open transaction that holds a claim. Dropping it rolls back.
///
/// It derefs to [`tokio_postgres::Client`], so that your statements run in the claim's transaction,
/// and `&**tx` suits code that takes a client or a `GenericClient`:
///
/// ```no_run
/// # use onceonly::{Event, Handler};
/// # use onceonly_postgres::PostgresStore;
/// # use onceonly_postgres::tokio_postgres::{Error, GenericClient};
/// async fn credit(client: &impl GenericClient, account: &str) -> Result<u64, Error> {
///     let update = "UPDATE accounts SET credits = credits + 10 WHERE id = $1";
///     client.execute(update, &[&account]).await
/// }
///
/// # async fn example(handler: Handler<PostgresStore>, event: Event) -> Result<(), Box<dyn std::error::Error>> {
/// handler.handle(&event, async |tx| credit(&**tx, "acme").await).await?;
/// # Ok(()) }
/// ```
///
/// Never send COMMIT, ROLLBACK or PREPARE TRANSACTION on it: the claim and your effects would no
/// longer stand or fall together, and the commit fails with
/// [`TransactionEnded`](StoreErrorKind::TransactionEnded).
///
/// When it is dropped, ROLLBACK is sent at once; a statement that is still running (its future was
/// dropped by a timeout of yours) is cancelled after 200 ms and the connection closed.
#[must_use = "a transaction that is dropped is rolled back"]
pub struct PostgresTx {
    connection: Connection,
    pub(crate) source: Source,
    pub(crate) id: EventId,
    pub(crate) token: ClaimToken,
}

impl PostgresTx {
    /// `connection` rolls back when it is dropped.
    pub(crate) fn new(connection: Connection, event: &Event, token: ClaimToken) -> Self {
        Self {
            connection,
            source: event.source().clone(),
            id: event.id().clone(),
            token,
        }
    }

    /// Sets a savepoint: what is done on it can be rolled back without harming the claim.
    ///
    /// # Errors
    ///
    /// The database's. A dropped future leaves no savepoint behind.
    pub async fn savepoint(&mut self) -> Result<PostgresSavepoint<'_>, Error> {
        PostgresSavepoint::set(&self.connection, 1).await
    }

    /// A prepared statement out of the connection's cache, or prepared now and kept.
    ///
    /// The statement has a name on the server connection. Behind PgBouncer in transaction mode don't
    /// use it, nor [`Client::prepare`]: before version 1.21 another client's statement of the same
    /// name may run instead, silently. [`Client::query_typed`] and [`Client::execute_typed`] are safe
    /// everywhere.
    ///
    /// # Errors
    ///
    /// The database's; the transaction is then doomed.
    pub async fn prepare_cached(&self, query: &str) -> Result<Statement, Error> {
        self.connection.prepare_cached(query).await
    }

    pub(crate) fn into_parts(self) -> (Connection, Source, EventId, ClaimToken) {
        (self.connection, self.source, self.id, self.token)
    }

    pub(crate) async fn roll_back(self) -> Result<(), StoreError> {
        unwind(self.connection, GRACE, End::RollBack)
            .await
            .unwrap_or_else(|error| {
                Err(StoreError::new(
                    StoreErrorKind::Unavailable,
                    "the runtime shut down during the rollback; the connection is closed",
                )
                .with_source(error))
            })
    }
}

impl Deref for PostgresTx {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.connection
    }
}

impl fmt::Debug for PostgresTx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresTx")
            .field("source", &self.source)
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
