//! Ending a transaction whatever its connection is doing, in the background.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use onceonly::{StoreError, StoreErrorKind};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::CancelToken;

use crate::connection::{Connection, OnDrop};
use crate::connector::Canceller;
use crate::error::{chain, failed, plain_code};

/// How long a statement that was under way may go on before it is cancelled.
pub(crate) const GRACE: Duration = Duration::from_millis(200);

/// How long the server may take to act on a cancel request.
const CANCEL_LIMIT: Duration = Duration::from_millis(500);

/// When to ask again.
const CANCEL_AGAIN: Duration = Duration::from_millis(150);

/// How long a cancel request may take. It outlives whoever waits for its effect, so that its
/// connection is not closed early.
const REQUEST_LIMIT: Duration = Duration::from_secs(10);

/// What is waited for, and what then becomes of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Roll back; pool it if no cancel request was needed.
    RollBack,
    /// Wait for what is under way; close it. The server rolls back whatever is still open.
    Close,
}

type Settled =
    Pin<Box<dyn Future<Output = (Connection, Result<(), tokio_postgres::Error>)> + Send>>;

/// Rolls back, and returns the connection to its pool if that was confirmed within `grace`; else
/// cancels what is under way, waits for the server to say so, and closes the connection. With
/// [`End::Close`] it does so without a ROLLBACK and never pools.
///
/// ROLLBACK is sent before this returns. The rest happens on the connection's runtime, where
/// nobody has to poll; awaiting the handle tells when the key is free. Once the runtime has shut
/// down, the connection is closed. Never panics.
pub(crate) fn unwind(
    mut connection: Connection,
    grace: Duration,
    end: End,
) -> JoinHandle<Result<(), StoreError>> {
    connection.on_drop = OnDrop::Close;
    let runtime = connection.runtime.clone();
    let canceller = Arc::clone(&connection.canceller);
    let token = connection.cancel_token();
    let mut settled: Settled = Box::pin(settle(connection, end));
    // The first poll hands the request to the driver; the task below asks for the answer.
    let sent = settled
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()));

    runtime.spawn(async move {
        let pooled = match sent {
            Poll::Ready(done) => Some(done),
            Poll::Pending if grace.is_zero() => None,
            Poll::Pending => timeout(grace, &mut settled).await.ok(),
        };
        if let Some((connection, answer)) = pooled {
            return match answer {
                Ok(()) if end == End::Close => Ok(()),
                Ok(()) => {
                    connection.give_back();
                    Ok(())
                }
                Err(error) => Err(failed(error, "rolling back")),
            };
        }
        // A cancel request may hit whatever runs when it arrives: from here on it is only closed.
        let cancelled = timeout(CANCEL_LIMIT, async {
            loop {
                tokio::spawn(cancel(Arc::clone(&canceller), token.clone()));
                // One that came before its statement did nothing.
                if let Ok((_closed, answer)) = timeout(CANCEL_AGAIN, &mut settled).await {
                    return answer;
                }
            }
        });
        match cancelled.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(failed(error, "rolling back")),
            Err(_) => {
                tracing::warn!("no answer after a cancel request; connection closed");
                Err(StoreError::new(
                    StoreErrorKind::Unavailable,
                    "the rollback was not confirmed in time; the connection is closed, and the \
                     server rolls back when it notices",
                ))
            }
        }
    })
}

async fn settle(
    connection: Connection,
    end: End,
) -> (Connection, Result<(), tokio_postgres::Error>) {
    if end == End::Close {
        let answer = connection.check_connection().await;
        return (connection, answer);
    }
    let mut answer = connection.batch_execute("ROLLBACK").await;
    // 57014: a cancel request arrived late and hit the ROLLBACK, which is then still to be done.
    if answer.as_ref().err().and_then(plain_code) == Some("57014") {
        answer = connection.batch_execute("ROLLBACK").await;
    }
    (connection, answer)
}

async fn cancel(canceller: Arc<Canceller>, token: CancelToken) {
    let reason = match timeout(REQUEST_LIMIT, canceller.cancel(token)).await {
        Ok(Ok(())) => return,
        Ok(Err(error)) => chain(&*error),
        Err(_) => "no answer".to_owned(),
    };
    tracing::warn!(
        reason,
        "a statement could not be cancelled; its connection is closed"
    );
}
