//! What is read from and written to the claim table.

use std::time::{Duration, SystemTime};

use onceonly::Event;
use redb::{
    Database, Error, ReadableDatabase, ReadableTable, TableDefinition, TableError, WriteTransaction,
};

/// The claim table: `(source, event_id)` to `(event_type, received_at, claim_token)`.
///
/// `received_at` is in microseconds since 1970 by the machine's clock. The first claim makes the
/// table. It is public for reading; only the store should write to it.
pub const PROCESSED_EVENTS: TableDefinition<'static, Key, Row> =
    TableDefinition::new("processed_events");

type Key = (&'static str, &'static str);
type Row = (Option<&'static str>, u64, &'static [u8; 16]);

/// Random bytes by which a claim knows its own row again.
pub(crate) type Token = [u8; 16];

fn key(event: &Event) -> (&str, &str) {
    (event.source().as_str(), event.id().as_str())
}

fn now() -> u64 {
    let since_1970 = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    micros(since_1970)
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Whether a committed claim exists, by a snapshot of its own.
pub(crate) fn is_committed(database: &Database, event: &Event) -> Result<bool, Error> {
    match database.begin_read()?.open_table(PROCESSED_EVENTS) {
        Ok(table) => Ok(table.get(key(event))?.is_some()),
        Err(TableError::TableDoesNotExist(_)) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Inserts the claim; `false` when it is there already.
pub(crate) fn insert(
    transaction: &WriteTransaction,
    event: &Event,
    token: &Token,
) -> Result<bool, Error> {
    let mut table = transaction.open_table(PROCESSED_EVENTS)?;
    if table.get(key(event))?.is_some() {
        return Ok(false);
    }
    let event_type = event.event_type().map(|event_type| event_type.as_str());
    table.insert(key(event), (event_type, now(), token))?;
    Ok(true)
}

/// Whether the claim which this transaction inserted is still in it.
pub(crate) fn is_held(
    transaction: &WriteTransaction,
    event: &Event,
    token: &Token,
) -> Result<bool, Error> {
    let table = transaction.open_table(PROCESSED_EVENTS)?;
    let row = table.get(key(event))?;
    Ok(row.is_some_and(|row| row.value().2 == token))
}

/// Deletes a claim; `false` when there is none.
pub(crate) fn delete(transaction: &WriteTransaction, event: &Event) -> Result<bool, Error> {
    let mut table = transaction.open_table(PROCESSED_EVENTS)?;
    let row = table.remove(key(event))?;
    Ok(row.is_some())
}

/// Deletes at most `limit` claims that are older, walking the whole table: there is no index by age.
pub(crate) fn prune(
    transaction: &WriteTransaction,
    older_than: Duration,
    limit: u32,
) -> Result<u64, Error> {
    let (now, older_than) = (now(), micros(older_than));
    let mut table = transaction.open_table(PROCESSED_EVENTS)?;
    let is_old = |_: (&str, &str), (_, received_at, _): (Option<&str>, u64, &Token)| {
        now.saturating_sub(received_at) > older_than
    };
    let mut old = table.extract_if(.., is_old)?;
    let mut deleted = 0;
    for row in old.by_ref().take(limit as usize) {
        row?;
        deleted += 1;
    }
    old.close()?;
    Ok(deleted)
}
