//! Savepoints inside a claim's transaction.

use std::fmt;
use std::ops::Deref;

use futures_util::FutureExt;
use tokio_postgres::{Client, Error};

/// A savepoint. Dropping it rolls back to it.
///
/// ```no_run
/// # use onceonly_postgres::PostgresTx;
/// # async fn example(tx: &mut PostgresTx) -> Result<(), tokio_postgres::Error> {
/// let savepoint = tx.savepoint().await?;
/// match savepoint.batch_execute("INSERT INTO bonus VALUES ('acme')").await {
///     Ok(()) => savepoint.commit().await?,
///     // The failed statement is undone; the claim and what was done before are not.
///     Err(_) => savepoint.rollback().await?,
/// }
/// # Ok(()) }
/// ```
#[must_use = "a savepoint that is dropped is rolled back"]
pub struct PostgresSavepoint<'a> {
    client: &'a Client,
    depth: u32,
    done: bool,
}

impl<'a> PostgresSavepoint<'a> {
    pub(crate) async fn set(client: &'a Client, depth: u32) -> Result<Self, Error> {
        let mut savepoint = Self {
            client,
            depth,
            done: false,
        };
        let set = format!("SAVEPOINT onceonly_{depth}");
        if let Err(error) = client.batch_execute(&set).await {
            savepoint.done = true;
            return Err(error);
        }
        Ok(savepoint)
    }

    /// Sets a savepoint inside this one.
    ///
    /// # Errors
    ///
    /// The database's. A dropped future leaves no savepoint behind.
    pub async fn savepoint(&mut self) -> Result<PostgresSavepoint<'_>, Error> {
        PostgresSavepoint::set(self.client, self.depth + 1).await
    }

    /// Keeps what was done since, as part of the transaction around it.
    ///
    /// # Errors
    ///
    /// The database's: a statement since failed and its error was hidden. What was done since is
    /// then rolled back. When the future is dropped the server still does what was asked; if it
    /// can't, the transaction is doomed.
    pub async fn commit(mut self) -> Result<(), Error> {
        // After RELEASE there is nothing to roll back to: trying would doom the transaction.
        self.done = true;
        let release = format!("RELEASE SAVEPOINT onceonly_{}", self.depth);
        let answer = self.client.batch_execute(&release).await;
        self.done = answer.is_ok();
        answer
    }

    /// Undoes what was done since, failed statements included.
    ///
    /// # Errors
    ///
    /// The database's; the transaction around it is then doomed. A dropped future rolls back too.
    pub async fn rollback(mut self) -> Result<(), Error> {
        self.done = true;
        self.client.batch_execute(&self.undo()).await
    }

    fn undo(&self) -> String {
        let depth = self.depth;
        format!("ROLLBACK TO SAVEPOINT onceonly_{depth}; RELEASE SAVEPOINT onceonly_{depth}")
    }
}

impl Drop for PostgresSavepoint<'_> {
    fn drop(&mut self) {
        if !self.done {
            let _sent = self.client.batch_execute(&self.undo()).now_or_never();
        }
    }
}

impl Deref for PostgresSavepoint<'_> {
    type Target = Client;

    fn deref(&self) -> &Client {
        self.client
    }
}

impl fmt::Debug for PostgresSavepoint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresSavepoint")
            .field("depth", &self.depth)
            .finish_non_exhaustive()
    }
}
