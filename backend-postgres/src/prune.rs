//! Deleting old claims.

use std::time::Duration;

use onceonly::StoreError;
use tokio_postgres::SimpleQueryMessage;

use crate::connection::OnDrop;
use crate::error::failed;
use crate::store::PostgresStore;

/// Rows per transaction: a claim of a key that is being deleted waits for that long (about 30 ms,
/// measured).
const BATCH: u32 = 1_000;

/// Older than anything can be: `now()` less this is still a timestamp of PostgreSQL.
const FOREVER: Duration = Duration::from_secs(5_000 * 365 * 24 * 60 * 60);

pub(crate) async fn prune(
    store: &PostgresStore,
    older_than: Duration,
    limit: u32,
) -> Result<u64, StoreError> {
    let older_than = older_than.min(FOREVER);
    let mut deleted = 0;
    while deleted < u64::from(limit) {
        let left = u64::from(limit) - deleted;
        let batch = BATCH.min(u32::try_from(left).unwrap_or(BATCH));
        let gone = prune_batch(store, older_than, batch).await?;
        deleted += gone;
        if gone < u64::from(batch) {
            break;
        }
    }
    Ok(deleted)
}

async fn prune_batch(
    store: &PostgresStore,
    older_than: Duration,
    limit: u32,
) -> Result<u64, StoreError> {
    let mut connection = store.ready().await?;
    connection.on_drop = OnDrop::Cancel;
    let prune = store.shared.statements.prune(older_than, limit);
    let answer = connection.simple_query(&prune).await;
    connection.on_drop = OnDrop::RollBack;
    let messages = answer.map_err(|error| failed(error, "pruning"))?;
    connection.give_back();
    // BEGIN and COMMIT complete with 0 rows, DELETE with what it deleted.
    Ok(messages
        .iter()
        .map(|message| match message {
            SimpleQueryMessage::CommandComplete(rows) => *rows,
            _ => 0,
        })
        .sum())
}
