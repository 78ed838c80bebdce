//! COMMIT, and the proof that it took place and committed the claim.

use onceonly::{ClaimFate, StoreError, StoreErrorKind};

use crate::connection::Connection;
use crate::error::{DEADLOCK, NO_SUCH_SAVEPOINT};
use crate::proof::Nonce;
use crate::reply::bytes;
use crate::statements::{self, Statements};
use crate::transaction::Claimed;

/// Commits what holds the claim. The connection goes back to the pool when that is proven.
pub(crate) async fn commit(
    mut connection: Connection,
    claimed: Claimed,
    statements: &Statements,
) -> Result<(), StoreError> {
    let nonce = Nonce::random();
    let text = statements::commit(claimed.token, nonce);
    let reply = connection.conclude(&text, nonce).await;
    if reply.ends_with(nonce) {
        return Ok(());
    }
    let refused = reply.server_error().map(|error| error.code);
    // The name is random: who reads it back reads the reply to this very request.
    let ended = reply.server_error().is_some_and(|error| {
        error.code == NO_SUCH_SAVEPOINT
            && error
                .message
                .contains(&statements::savepoint(claimed.token))
    });
    let error = match refused {
        Some(_) if ended => {
            let claim = fate(connection, &claimed, statements).await;
            StoreError::new(
                StoreErrorKind::TransactionEnded { claim },
                "a statement in apply committed or rolled back the claim's transaction (COMMIT, \
                 ROLLBACK, BEGIN, DDL, or a deadlock that apply hid)",
            )
        }
        // An old reply may say so too; a rollback in step shows that it was this request's.
        Some(DEADLOCK) if connection.roll_back().await.is_ok() => StoreError::new(
            StoreErrorKind::Conflict,
            "the database refused the commit in favour of another transaction",
        ),
        _ => {
            connection.give_up();
            StoreError::new(
                StoreErrorKind::CommitUnknown,
                "COMMIT was not confirmed: the connection was lost, or a statement that apply \
                 abandoned had left its reply unread",
            )
        }
    };
    Err(match reply.error {
        Some(source) => error.with_source(source),
        None => error,
    })
}

/// What became of a claim whose transaction is gone. Its session is closed, since `apply` may have
/// left it in any state.
async fn fate(mut connection: Connection, claimed: &Claimed, statements: &Statements) -> ClaimFate {
    if connection.roll_back().await.is_err() {
        return ClaimFate::Unknown;
    }
    let nonce = Nonce::random();
    let text = statements.read(&claimed.source, &claimed.id, nonce);
    let reply = connection.conclude(&text, nonce).await;
    if !reply.ends_with(nonce) {
        return ClaimFate::Unknown;
    }
    let ours = reply
        .rows
        .iter()
        .rev()
        .skip(1)
        .filter_map(|row| bytes(row, 0))
        .any(|token| claimed.token.is(token));
    connection.retire();
    if ours {
        ClaimFate::Durable
    } else {
        ClaimFate::Absent
    }
}
