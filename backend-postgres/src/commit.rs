//! Committing: one round trip that commits the claim's transaction or no transaction at all.

use std::sync::atomic::Ordering;
use std::time::Duration;

use onceonly::{ClaimFate, EventId, Source, StoreError, StoreErrorKind};
use tokio::time::timeout;
use tokio_postgres::types::Type;

use crate::connection::{Connection, OnDrop};
use crate::error::{chain, failed, plain_code};
use crate::statements::{self, GUARD_STATE, Statements};
use crate::store::PostgresStore;
use crate::token::ClaimToken;
use crate::transaction::PostgresTx;
use crate::unwind::{End, GRACE, unwind};

/// How long to look for a claim whose transaction ended.
const FATE_LIMIT: Duration = Duration::from_secs(2);

pub(crate) async fn commit(store: &PostgresStore, tx: PostgresTx) -> Result<(), StoreError> {
    let (mut connection, source, id, token) = tx.into_parts();
    let commit = statements::commit(&token);
    connection.on_drop = if store.shared.has_standbys.load(Ordering::Relaxed) {
        // A COMMIT that waits for a standby would become visible without being safe there.
        OnDrop::Close
    } else {
        OnDrop::GiveUp
    };
    let answer = connection.batch_execute(&commit).await;
    connection.on_drop = OnDrop::Close;
    let Err(error) = answer else {
        connection.give_back();
        return Ok(());
    };
    // What is definite is this list. Everything else leaves it open whether COMMIT was run.
    let definite = match plain_code(&error) {
        Some("40001" | "40P01") => failed(error, "committing"),
        Some("25P02") => StoreError::new(
            StoreErrorKind::TransactionDoomed,
            "a statement failed in apply; return its error, or run it on a savepoint",
        )
        .with_source(error),
        Some(code) if code.starts_with("23") => refused(error),
        Some(GUARD_STATE) if is_guard(&error, &token) => {
            let statements = &store.shared.statements;
            let claim = fate(connection, statements, &source, &id, &token).await;
            return Err(StoreError::new(
                StoreErrorKind::TransactionEnded { claim },
                "apply must not send COMMIT, ROLLBACK or PREPARE TRANSACTION",
            )
            .with_source(error));
        }
        _ => {
            return Err(StoreError::new(
                StoreErrorKind::CommitUnknown,
                format!("COMMIT was not confirmed: {}", chain(&error)),
            )
            .with_source(error));
        }
    };
    let _key_is_free = unwind(connection, GRACE, End::RollBack).await;
    Err(definite)
}

fn refused(error: tokio_postgres::Error) -> StoreError {
    let message = error.as_db_error().map_or_else(String::new, |db| {
        format!("{} (SQLSTATE {})", db.message(), db.code().code())
    });
    StoreError::new(StoreErrorKind::CommitRefused, message).with_source(error)
}

fn is_guard(error: &tokio_postgres::Error, token: &ClaimToken) -> bool {
    error
        .as_db_error()
        .is_some_and(|db| db.message().contains(token.hex()))
}

/// Ends whatever is open, and reads the claim's row again.
async fn fate(
    mut connection: Connection,
    statements: &Statements,
    source: &Source,
    id: &EventId,
    token: &ClaimToken,
) -> ClaimFate {
    let read = async {
        connection.batch_execute("ROLLBACK").await?;
        connection
            .query_typed_one(
                statements.fate(),
                &[
                    (&source.as_str(), Type::TEXT),
                    (&id.as_str(), Type::TEXT),
                    (&token.bytes(), Type::BYTEA),
                ],
            )
            .await
    };
    let Ok(Ok(row)) = timeout(FATE_LIMIT, read).await else {
        return ClaimFate::Unknown;
    };
    connection.on_drop = OnDrop::RollBack;
    let found: (Result<Option<bool>, _>, Result<bool, _>) = (row.try_get(0), row.try_get(1));
    connection.give_back();
    match found {
        (Ok(Some(true)), _) => ClaimFate::Durable,
        (Ok(_), Ok(false)) => ClaimFate::Absent,
        _ => ClaimFate::Unknown,
    }
}
