//! Single claims, for support tools and repairs.

use std::time::Duration;

use onceonly::{Claim, ClaimStore, Event, EventId, Forget, Source, StoreError, StoreErrorKind};
use tokio::time::Instant;
use tokio_postgres::types::Type;

use crate::connection::OnDrop;
use crate::deadline::Deadline;
use crate::error::{chain, failed, plain_code};
use crate::store::PostgresStore;
use crate::unwind::{End, unwind};

pub(crate) async fn is_claimed(
    store: &PostgresStore,
    source: &Source,
    id: &EventId,
) -> Result<bool, StoreError> {
    let mut connection = store.ready().await?;
    connection.on_drop = OnDrop::Cancel;
    let answer = connection
        .query_typed_opt(
            store.shared.statements.is_claimed(),
            &[(&source.as_str(), Type::TEXT), (&id.as_str(), Type::TEXT)],
        )
        .await;
    connection.on_drop = OnDrop::Close;
    let row = answer.map_err(|error| failed(error, "looking for a claim"))?;
    connection.give_back();
    Ok(row.is_some())
}

/// A DELETE doesn't see an open claim. So it claims first, which waits for it.
pub(crate) async fn forget(
    store: &PostgresStore,
    source: &Source,
    id: &EventId,
    wait: Duration,
) -> Result<Forget, StoreError> {
    let started = Instant::now();
    let event = Event::from_parts(source.clone(), id.clone());
    match store.claim(&event, wait).await? {
        Claim::Fresh(tx) => {
            store.rollback(tx).await?;
            Ok(Forget::NotClaimed)
        }
        Claim::Duplicate(_) => {
            delete(store, source, id, wait.saturating_sub(started.elapsed())).await
        }
    }
}

async fn delete(
    store: &PostgresStore,
    source: &Source,
    id: &EventId,
    wait: Duration,
) -> Result<Forget, StoreError> {
    let mut connection = store.ready().await?;
    let mut deadline = Deadline::new(wait);
    loop {
        connection.on_drop = OnDrop::Cancel;
        let delete = async {
            connection
                .batch_execute("BEGIN ISOLATION LEVEL READ COMMITTED")
                .await?;
            connection
                .execute_typed(
                    store.shared.statements.forget(),
                    &[(&source.as_str(), Type::TEXT), (&id.as_str(), Type::TEXT)],
                )
                .await
        };
        let Some(answer) = deadline.limit(delete).await else {
            let _rolled_back = unwind(connection, Duration::ZERO, End::RollBack).await;
            return Err(in_flight());
        };
        connection.on_drop = OnDrop::RollBack;
        let error = match answer {
            Ok(0) => {
                connection.send_rollback();
                connection.give_back();
                return Ok(Forget::NotClaimed);
            }
            Ok(_) => {
                connection.on_drop = OnDrop::Close;
                connection.batch_execute("COMMIT").await.map_err(unknown)?;
                connection.give_back();
                return Ok(Forget::Forgotten);
            }
            Err(error) => error,
        };
        match plain_code(&error) {
            Some("40001" | "40P01" | "55P03" | "57014") => {
                connection.send_rollback();
                if !deadline.pause().await {
                    return Err(in_flight().with_source(error));
                }
            }
            _ => return Err(failed(error, "deleting a claim")),
        }
    }
}

fn unknown(error: tokio_postgres::Error) -> StoreError {
    let message = format!("whether the claim was deleted: {}", chain(&error));
    StoreError::new(StoreErrorKind::CommitUnknown, message).with_source(error)
}

fn in_flight() -> StoreError {
    StoreError::new(
        StoreErrorKind::InFlight,
        "another transaction holds the claim's row",
    )
}
