//! Deleting old claims without waiting for open ones.

use std::time::Duration;

use onceonly::{StoreError, StoreErrorKind};
use tokio::time::sleep;

use crate::connection::Connection;
use crate::error;
use crate::proof::Nonce;
use crate::reply::bytes;
use crate::statements::Statements;

/// Rows per transaction. A claim of one of these keys waits for as long as one such batch takes.
const BATCH: u32 = 200;
const RETRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(20);

/// Deletes at most `limit` claims that are older, and says how many.
///
/// A locking scan would wait at the first open claim and hold what it deleted before, so the keys
/// are read without a lock and deleted by the primary key, their age asked again.
pub(crate) async fn run(
    connection: &mut Connection,
    statements: &Statements,
    older_than: Duration,
    limit: u32,
) -> Result<u64, StoreError> {
    let micros = u64::try_from(older_than.as_micros()).unwrap_or(u64::MAX);
    // 9,999 years, the end of DATETIME: nothing is older.
    if micros > 9_999 * 366 * 24 * 3_600 * 1_000_000 {
        return Ok(0);
    }
    let mut deleted = 0;
    let mut left = limit;
    let mut conflicts = 0;
    while left > 0 {
        let nonce = Nonce::random();
        let text = statements.expired(micros, left.min(BATCH), nonce);
        let rows = connection.conclude(&text, nonce).await.proven(nonce)?;
        let mut keys: Vec<(Vec<u8>, Vec<u8>)> = rows
            .iter()
            .filter_map(|row| Some((bytes(row, 0)?.to_vec(), bytes(row, 1)?.to_vec())))
            .collect();
        if keys.is_empty() {
            break;
        }
        // One order for all who prune at the same time.
        keys.sort_unstable();
        match delete(connection, statements, &keys, micros).await {
            Ok(count) => {
                deleted += count;
                left = left.saturating_sub(u32::try_from(count).unwrap_or(u32::MAX));
            }
            Err(error) if error.kind() == StoreErrorKind::Conflict && conflicts < RETRIES => {
                conflicts += 1;
                connection.roll_back().await.map_err(|_| error)?;
                sleep(PAUSE * conflicts).await;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(deleted)
}

async fn delete(
    connection: &mut Connection,
    statements: &Statements,
    keys: &[(Vec<u8>, Vec<u8>)],
    micros: u64,
) -> Result<u64, StoreError> {
    let (nonce, done) = (Nonce::random(), Nonce::random());
    let text = statements.prune(keys, micros, nonce, done);
    let reply = connection
        .contend(&text, nonce)
        .await
        .ok_or_else(error::out_of_step)?;
    let affected = reply.affected;
    reply.proven(done)?;
    connection.settled();
    Ok(affected)
}
