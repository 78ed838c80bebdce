//! The transaction that is handed over to `apply`.

use std::fmt;
use std::ops::Deref;

use onceonly::{ClaimFate, Event, StoreError, StoreErrorKind};
use redb::{Error, WriteTransaction};

use crate::error;
use crate::statements::{self, Token};
use crate::writer::Writer;

/// The open write transaction that holds a claim: open tables in it as in any of redb's.
///
/// It derefs to [`redb::WriteTransaction`], by `&` only, so that it can't be committed, aborted or
/// made less durable by anything but the store. Dropping it rolls back on a blocking thread, and only
/// then lets the next writer in. While it lives nobody else writes to the database.
///
/// redb's calls block their thread, for reads of the file mostly: it is the commit that waits for the
/// disk, and the store runs that on a blocking thread.
#[must_use = "a transaction that is dropped is rolled back"]
pub struct RedbTx {
    writer: Writer,
    event: Event,
    token: Token,
}

impl RedbTx {
    /// Inserts the claim, blocking the thread; `None`, and rolled back, when it is there already.
    pub(crate) fn claim(writer: Writer, event: Event) -> Result<Option<Self>, StoreError> {
        let token = rand::random();
        if statements::insert(&writer, &event, &token).map_err(error::statement)? {
            return Ok(Some(Self {
                writer,
                event,
                token,
            }));
        }
        writer.abort().map_err(error::statement)?;
        Ok(None)
    }

    /// Commits if the claim is still there, blocking the thread.
    pub(crate) fn commit(self) -> Result<(), StoreError> {
        match statements::is_held(&self.writer, &self.event, &self.token) {
            Ok(true) => self.writer.commit().map_err(error::commit),
            // Whatever comes of the rollback: nothing of this transaction was committed.
            lost => {
                let _ = self.writer.abort();
                Err(not_held(lost))
            }
        }
    }

    /// Rolls back, blocking the thread.
    pub(crate) fn rollback(self) -> Result<(), StoreError> {
        self.writer.abort().map_err(error::statement)
    }
}

fn not_held(lost: Result<bool, Error>) -> StoreError {
    let absent = StoreErrorKind::TransactionEnded {
        claim: ClaimFate::Absent,
    };
    match lost {
        Err(error @ Error::TableAlreadyOpen(..)) => StoreError::new(
            StoreErrorKind::TransactionDoomed,
            "the table processed_events was leaked: leave it to the store",
        )
        .with_source(error),
        Err(
            error @ (Error::TableTypeMismatch(_)
            | Error::TypeDefinitionChanged(_)
            | Error::TableIsMultimap(_)),
        ) => StoreError::new(absent, "the table processed_events was replaced").with_source(error),
        Err(error) => error::statement(error),
        Ok(_) => StoreError::new(absent, "its claim was deleted from processed_events"),
    }
}

impl Deref for RedbTx {
    type Target = WriteTransaction;

    fn deref(&self) -> &WriteTransaction {
        &self.writer
    }
}

impl fmt::Debug for RedbTx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedbTx")
            .field("event", &self.event)
            .finish_non_exhaustive()
    }
}
