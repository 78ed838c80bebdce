//! What redb's errors say about claim and effects.

use onceonly::{StoreError, StoreErrorKind};
use redb::{CommitError, Error};

/// An error before the commit: nothing happened.
pub(crate) fn statement(error: impl Into<Error>) -> StoreError {
    let error = error.into();
    let (kind, message) = match &error {
        Error::TableTypeMismatch(_)
        | Error::TypeDefinitionChanged(_)
        | Error::TableIsMultimap(_)
        | Error::TableIsNotMultimap(_) => (
            StoreErrorKind::Schema,
            "the table processed_events has other types: rename it, and the next claim makes it anew",
        ),
        Error::Corrupted(_) => (
            StoreErrorKind::Other,
            "the database file is corrupted: restore it from a backup",
        ),
        Error::PreviousIo => (
            StoreErrorKind::Unavailable,
            "an earlier write failed: close the database and open it again",
        ),
        _ => (StoreErrorKind::Unavailable, "redb gave an error"),
    };
    StoreError::new(kind, message).with_source(error)
}

/// An error of the commit. A poisoned transaction was rolled back; after anything else it may have
/// become durable all the same.
pub(crate) fn commit(error: CommitError) -> StoreError {
    let (kind, message) = match &error {
        CommitError::TransactionPoisoned => (
            StoreErrorKind::TransactionDoomed,
            "a table was leaked, or a statement panicked or failed half way: return its error",
        ),
        _ => (
            StoreErrorKind::CommitUnknown,
            "redb gave an error at the commit: close the database and open it again",
        ),
    };
    StoreError::new(kind, message).with_source(error)
}
