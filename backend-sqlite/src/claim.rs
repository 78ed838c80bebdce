//! BEGIN IMMEDIATE and the claim's INSERT, on a blocking thread.

use std::sync::Arc;

use onceonly::{Event, EventId, Source, StoreError};
use rusqlite::{Connection, OptionalExtension, params};

use crate::error::{failed, is_busy};
use crate::statements::{BEGIN, Statements};
use crate::transaction::SqliteTx;
use crate::writer::Writer;

/// Whose claim it is: the key, and a token that no other claim of the key has.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) source: Source,
    pub(crate) id: EventId,
    pub(crate) token: [u8; 16],
}

impl Identity {
    pub(crate) fn new(event: &Event) -> Self {
        Self {
            source: event.source().clone(),
            id: event.id().clone(),
            token: rand::random(),
        }
    }
}

/// What one attempt came to. Whatever is open in it rolls back when it is dropped.
pub(crate) enum Attempt {
    Fresh(SqliteTx),
    Duplicate,
    /// Another process has the file's write lock.
    Busy(Writer),
}

pub(crate) fn attempt(
    mut writer: Writer,
    event: &Event,
    statements: Arc<Statements>,
) -> Result<Attempt, StoreError> {
    if !begin(&mut writer)? {
        // While another process writes, what is committed can still be seen.
        let seen = is_claimed(writer.connection(), &statements, event.source(), event.id());
        return Ok(if matches!(seen, Ok(true)) {
            Attempt::Duplicate
        } else {
            Attempt::Busy(writer)
        });
    }
    let claim = Identity::new(event);
    let fresh = insert(&writer, event, &claim, &statements)
        .map_err(|error| failed("claiming the event", error))?;
    Ok(if fresh {
        Attempt::Fresh(SqliteTx::new(writer, claim, statements))
    } else {
        Attempt::Duplicate
    })
}

/// Opens a transaction that holds the file's write lock. `false` when another process has it.
pub(crate) fn begin(writer: &mut Writer) -> Result<bool, StoreError> {
    if !writer.reconnect_if_stale()? {
        return Ok(false);
    }
    let begun = writer
        .connection()
        .prepare_cached(BEGIN)
        .and_then(|mut begin| begin.execute(()));
    match begun {
        Ok(_) => Ok(true),
        Err(error) if is_busy(&error) => Ok(false),
        Err(error) => {
            writer.discard();
            Err(failed("beginning a transaction", error))
        }
    }
}

fn insert(
    writer: &Writer,
    event: &Event,
    claim: &Identity,
    statements: &Statements,
) -> rusqlite::Result<bool> {
    let connection = writer.connection();
    let inserted = connection
        .prepare_cached(&statements.claim)?
        .execute(params![
            claim.source.as_str(),
            claim.id.as_str(),
            event.event_type().map(|event_type| event_type.as_str()),
            claim.token.as_slice(),
        ])?;
    if inserted == 0 {
        return Ok(false);
    }
    connection
        .prepare_cached(&writer.savepoint().set)?
        .execute(())?;
    Ok(true)
}

pub(crate) fn is_claimed(
    connection: &Connection,
    statements: &Statements,
    source: &Source,
    id: &EventId,
) -> rusqlite::Result<bool> {
    connection
        .prepare_cached(&statements.is_claimed)?
        .query_row((source.as_str(), id.as_str()), |row| row.get(0))
}

/// Whether the committed claim of the key is this one.
pub(crate) fn is_ours(
    connection: &Connection,
    statements: &Statements,
    claim: &Identity,
) -> rusqlite::Result<bool> {
    let token: Option<Vec<u8>> = connection
        .prepare_cached(&statements.token)?
        .query_row((claim.source.as_str(), claim.id.as_str()), |row| row.get(0))
        .optional()?;
    Ok(token.is_some_and(|token| token == claim.token))
}
