//! What a database has to do for onceonly: the side of the crate that backends implement.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::{Claim, Event, EventId, Source, StoreError};

/// A database that keeps claims: the interface that every backend implements.
///
/// A store alone is already correct: [`Handler`](crate::Handler) adds convenience and an
/// in-process queue, never a guarantee. `docs/writing-a-backend.md` in the repository leads from an
/// empty crate to a backend that passes the conformance suite; the rules named here (R1…R18) are
/// cases of that suite.
///
/// **Cancel safety (R5).** Any future of this trait, and `Tx` itself, may be dropped at any await.
/// What was not committed is rolled back promptly and without further polling, waiters are
/// released, and no connection goes back to a pool with a request in flight or a transaction open.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a store of claims",
    note = "onceonly-postgres, onceonly-mysql and onceonly-sqlite have one each; to write your own, see docs/writing-a-backend.md"
)]
pub trait ClaimStore: Send + Sync {
    /// The open native transaction that holds the claim. Dropping it rolls back.
    ///
    /// An owned type without a lifetime parameter, so that futures which hold it stay `Send`.
    type Tx: Send + 'static;

    /// Opens a transaction and inserts the event's key under the unique index.
    ///
    /// While another transaction holds the same key uncommitted, this waits for it: it commits and
    /// this answers [`Claim::Duplicate`]; it rolls back and this claims (R2, R3). `wait` bounds the
    /// whole of it, over retries and successive holders (R6): zero tries once, [`Duration::MAX`]
    /// waits without a limit. Waiting for a connection is not part of it; a store bounds that by a
    /// setting of its own. Deadlocks and serialization failures are retried inside (R13).
    ///
    /// # Errors
    ///
    /// [`InFlight`](crate::StoreErrorKind::InFlight) when `wait` passed,
    /// [`Unavailable`](crate::StoreErrorKind::Unavailable) when no connection could be had or it
    /// was lost, [`Schema`](crate::StoreErrorKind::Schema) when the claim table is missing or
    /// unfit, and others as their kinds say. After any error, and when the future is dropped,
    /// nothing is claimed.
    async fn claim(&self, event: &Event, wait: Duration) -> Result<Claim<Self::Tx>, StoreError>;

    /// Commits the claim and all effects in `tx`, together.
    ///
    /// `Ok` is said only when the database confirmed the COMMIT *and* the transaction that it
    /// committed is the one that holds the claim (R4).
    ///
    /// # Errors
    ///
    /// Nothing is committed after [`Conflict`](crate::StoreErrorKind::Conflict),
    /// [`TransactionDoomed`](crate::StoreErrorKind::TransactionDoomed) and
    /// [`CommitRefused`](crate::StoreErrorKind::CommitRefused);
    /// [`TransactionEnded`](crate::StoreErrorKind::TransactionEnded) says itself what became of the
    /// claim. Everything else that fails here is
    /// [`CommitUnknown`](crate::StoreErrorKind::CommitUnknown), and so is a dropped future: both or
    /// neither of claim and effects are there, and the next claim of the key finds out.
    async fn commit(&self, tx: Self::Tx) -> Result<(), StoreError>;

    /// Rolls back the claim and all effects in `tx`, and returns when the key is free again.
    ///
    /// # Errors
    ///
    /// When the rollback could not be confirmed. The store then gave the connection up, and the
    /// database rolls back when it notices; the same when the future is dropped.
    async fn rollback(&self, tx: Self::Tx) -> Result<(), StoreError>;

    /// Deletes at most `limit` committed claims older than `older_than` by the *database's* clock,
    /// and returns how many (R14).
    ///
    /// A return below `limit` means that none was left. Call it again until then, or let a
    /// [`Pruner`](crate::Pruner) do so. It works in short transactions, never waits on an open
    /// claim and never deletes one. On a single-writer database it queues for the writer instead,
    /// for at most a setting of the store's own, and ends as
    /// [`InFlight`](crate::StoreErrorKind::InFlight) without having deleted anything.
    ///
    /// # Errors
    ///
    /// As [`claim`](Self::claim). What was deleted before an error or a drop stays deleted.
    async fn prune(&self, older_than: Duration, limit: u32) -> Result<u64, StoreError>;

    /// Whether an error out of `apply` was this database's serialization failure or deadlock, at
    /// any depth of [`source`](Error::source).
    ///
    /// True means: the same work in a new transaction may succeed.
    /// An error type that leaves the driver's error out of its chain of sources, as thiserror's
    /// `#[error(transparent)]` does, can't be recognised.
    fn is_conflict(&self, error: &(dyn Error + 'static)) -> bool;
}

/// Looking up and deleting single claims, for support tools and repairs.
///
/// An extension of [`ClaimStore`], which stays small for good. All shipped backends have it.
#[async_trait]
pub trait ClaimRecords: ClaimStore {
    /// Whether a committed claim of this event exists now.
    ///
    /// For people and tools. Never decide by it whether to process an event: between this answer
    /// and the next statement everything may change, and [`ClaimStore::claim`] decides without that
    /// gap.
    ///
    /// # Errors
    ///
    /// As [`ClaimStore::claim`], except that it doesn't wait for open claims.
    async fn is_claimed(&self, source: &Source, id: &EventId) -> Result<bool, StoreError>;

    /// Deletes the committed claim of this event, so that its next delivery is processed again.
    ///
    /// The effects of the first processing stay. An open claim is never deleted: this waits for it
    /// as a claim does, for at most `wait`.
    ///
    /// # Errors
    ///
    /// As [`ClaimStore::claim`]. A dropped future leaves it unknown whether the claim was deleted.
    async fn forget(
        &self,
        source: &Source,
        id: &EventId,
        wait: Duration,
    ) -> Result<Forget, StoreError>;
}

/// What [`ClaimRecords::forget`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Forget {
    /// A claim was there and is deleted.
    Forgotten,
    /// No committed claim was there.
    NotClaimed,
}

#[async_trait]
impl<S: ClaimStore + ?Sized> ClaimStore for Arc<S> {
    type Tx = S::Tx;

    async fn claim(&self, event: &Event, wait: Duration) -> Result<Claim<S::Tx>, StoreError> {
        (**self).claim(event, wait).await
    }

    async fn commit(&self, tx: S::Tx) -> Result<(), StoreError> {
        (**self).commit(tx).await
    }

    async fn rollback(&self, tx: S::Tx) -> Result<(), StoreError> {
        (**self).rollback(tx).await
    }

    async fn prune(&self, older_than: Duration, limit: u32) -> Result<u64, StoreError> {
        (**self).prune(older_than, limit).await
    }

    fn is_conflict(&self, error: &(dyn Error + 'static)) -> bool {
        (**self).is_conflict(error)
    }
}

#[async_trait]
impl<S: ClaimRecords + ?Sized> ClaimRecords for Arc<S> {
    async fn is_claimed(&self, source: &Source, id: &EventId) -> Result<bool, StoreError> {
        (**self).is_claimed(source, id).await
    }

    async fn forget(
        &self,
        source: &Source,
        id: &EventId,
        wait: Duration,
    ) -> Result<Forget, StoreError> {
        (**self).forget(source, id, wait).await
    }
}
