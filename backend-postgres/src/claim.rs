//! Claiming: one round trip, as often as a conflict makes it necessary.

use std::time::Duration;

use futures_util::future::join;
use onceonly::{Claim, Duplicate, Event, StoreError, StoreErrorKind};
use tokio_postgres::types::{ToSql, Type};

use crate::connection::{Connection, OnDrop};
use crate::deadline::Deadline;
use crate::error::{failed, plain_code};
use crate::statements::Statements;
use crate::store::PostgresStore;
use crate::token::ClaimToken;
use crate::transaction::PostgresTx;
use crate::unwind::{End, unwind};

pub(crate) async fn claim(
    store: &PostgresStore,
    event: &Event,
    wait: Duration,
) -> Result<Claim<PostgresTx>, StoreError> {
    let mut connection = store.ready().await?;
    let mut deadline = Deadline::new(wait);
    loop {
        let token = ClaimToken::random();
        connection.on_drop = OnDrop::Cancel;
        let insert = insert(&connection, &store.shared.statements, event, &token);
        let Some((begun, answer)) = deadline.limit(insert).await else {
            return Err(give_up(connection).await);
        };
        connection.on_drop = OnDrop::RollBack;
        let error = match answer {
            Ok(0) => {
                connection.send_rollback();
                connection.give_back();
                return Ok(Claim::Duplicate(Duplicate::new()));
            }
            Ok(_) => return Ok(Claim::Fresh(PostgresTx::new(connection, event, token))),
            Err(error) => error,
        };
        match plain_code(&error) {
            // Serialization failure, deadlock; the session's own lock_timeout and statement_timeout,
            // which are not the limit that the caller gave.
            Some("40001" | "40P01" | "55P03" | "57014") => {
                connection.send_rollback();
                if !deadline.pause().await {
                    return Err(in_flight().with_source(error));
                }
            }
            Some("23502") if outside(&error) => {
                return Err(StoreError::new(
                    StoreErrorKind::Unsupported,
                    "BEGIN did not open a transaction of this connection; behind PgBouncer use \
                     pool_mode = transaction or session",
                )
                .with_source(error));
            }
            Some(_) => return Err(failed(error, "claiming")),
            // The server closed it while it was idle in the pool. Each try uses up one such
            // connection, so this ends.
            None if !begun && connection.is_reused() => {
                connection.on_drop = OnDrop::Close;
                drop(connection);
                connection = store.acquire().await?;
            }
            None => {
                connection.on_drop = OnDrop::Close;
                return Err(failed(error, "claiming"));
            }
        }
    }
}

/// Opens the transaction and inserts, in one round trip: requests go out in the order in which
/// their futures are first polled. Says beside the answer whether BEGIN succeeded.
async fn insert(
    connection: &Connection,
    statements: &Statements,
    event: &Event,
    token: &ClaimToken,
) -> (bool, Result<u64, tokio_postgres::Error>) {
    let event_type = event.event_type().map(|event_type| event_type.as_str());
    let (hex, bytes) = (token.hex(), token.bytes());
    let parameters: [(&(dyn ToSql + Sync), Type); 5] = [
        (&event.source().as_str(), Type::TEXT),
        (&event.id().as_str(), Type::TEXT),
        (&event_type, Type::TEXT),
        (&hex, Type::TEXT),
        (&bytes, Type::BYTEA),
    ];
    let (begun, inserted) = join(
        connection.batch_execute(statements.begin()),
        connection.execute_typed(statements.claim(), &parameters),
    )
    .await;
    (begun.is_ok(), begun.and(inserted))
}

/// The INSERT failed because it ran outside of the transaction that BEGIN should have opened.
fn outside(error: &tokio_postgres::Error) -> bool {
    error
        .as_db_error()
        .is_some_and(|db| db.column() == Some("received_at"))
}

/// `wait` has passed: the key must not be queued for any longer when the caller hears of it.
async fn give_up(connection: Connection) -> StoreError {
    match unwind(connection, Duration::ZERO, End::RollBack).await {
        Ok(Ok(())) => in_flight(),
        Ok(Err(error)) => in_flight().with_source(error),
        Err(error) => in_flight().with_source(error),
    }
}

fn in_flight() -> StoreError {
    StoreError::new(
        StoreErrorKind::InFlight,
        "another delivery of it holds its key",
    )
}
