//! Ending a transaction whatever its connection is doing, in the background.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use onceonly::{StoreError, StoreErrorKind};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::connection::{Connection, OnDrop};
use crate::error::{failed, plain_code};

/// How long a statement that was under way may go on before it is cancelled.
pub(crate) const GRACE: Duration = Duration::from_millis(200);

/// How long the server may take to act on a cancel request.
const CANCEL_LIMIT: Duration = Duration::from_millis(500);

type Rollback =
    Pin<Box<dyn Future<Output = (Connection, Result<(), tokio_postgres::Error>)> + Send>>;

/// Rolls back, and returns the connection to its pool if that was confirmed within `grace`; else
/// cancels what is under way, waits for the server to say so, and closes the connection.
///
/// ROLLBACK is sent before this returns. The rest happens on the connection's runtime, where
/// nobody has to poll; awaiting the handle tells when the key is free. Once the runtime has shut
/// down, the connection is closed. Never panics.
pub(crate) fn unwind(
    mut connection: Connection,
    grace: Duration,
) -> JoinHandle<Result<(), StoreError>> {
    connection.on_drop = OnDrop::Close;
    let runtime = connection.runtime.clone();
    let canceller = Arc::clone(&connection.canceller);
    let token = connection.cancel_token();
    let mut rollback: Rollback = Box::pin(roll_back(connection));
    // The first poll hands ROLLBACK to the driver; the task below asks for the answer.
    let sent = rollback
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()));

    runtime.spawn(async move {
        let pooled = match sent {
            Poll::Ready(done) => Some(done),
            Poll::Pending if grace.is_zero() => None,
            Poll::Pending => timeout(grace, &mut rollback).await.ok(),
        };
        if let Some((connection, answer)) = pooled {
            return match answer {
                Ok(()) => {
                    connection.give_back();
                    Ok(())
                }
                Err(error) => Err(failed(error, "rolling back")),
            };
        }
        // A cancel request may hit whatever runs when it arrives: from here on it is only closed.
        let cancelled = timeout(CANCEL_LIMIT, async {
            if let Err(error) = canceller.cancel(token).await {
                tracing::warn!(
                    error = %crate::error::chain(&*error),
                    "a statement could not be cancelled; its connection is closed"
                );
            }
            rollback.await.1
        });
        match cancelled.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(failed(error, "rolling back")),
            Err(_) => {
                tracing::warn!("no answer to ROLLBACK after a cancel request; connection closed");
                Err(StoreError::new(
                    StoreErrorKind::Unavailable,
                    "the rollback was not confirmed in time; the connection is closed, and the \
                     server rolls back when it notices",
                ))
            }
        }
    })
}

async fn roll_back(connection: Connection) -> (Connection, Result<(), tokio_postgres::Error>) {
    let mut answer = connection.batch_execute("ROLLBACK").await;
    // 57014: a cancel request arrived late and hit the ROLLBACK, which is then still to be done.
    if answer.as_ref().err().and_then(plain_code) == Some("57014") {
        answer = connection.batch_execute("ROLLBACK").await;
    }
    (connection, answer)
}
