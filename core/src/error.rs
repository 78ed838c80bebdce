//! What can go wrong in a store, and what each failure leaves behind.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

use crate::InvalidKey;

/// A failure of a store: a [kind](StoreErrorKind), a sentence, and the driver's error as its source.
///
/// ```
/// use onceonly::{StoreError, StoreErrorKind};
///
/// let error = StoreError::new(StoreErrorKind::Unavailable, "no connection within 5 s");
/// assert!(error.is_retryable());
/// assert_eq!(error.to_string(), "database unavailable: no connection within 5 s");
/// ```
pub struct StoreError(Box<Inner>);

struct Inner {
    kind: StoreErrorKind,
    message: Cow<'static, str>,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl StoreError {
    /// An error of this kind. `message` is lower case, without a full stop and without secrets.
    pub fn new(kind: StoreErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            source: None,
        }))
    }

    /// The same error with what caused it.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// What went wrong.
    #[must_use]
    pub fn kind(&self) -> StoreErrorKind {
        self.0.kind
    }

    /// Whether the same delivery may succeed later without a change to the code.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.0.kind.is_retryable()
    }
}

impl fmt::Debug for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreError")
            .field("kind", &self.0.kind)
            .field("message", &self.0.message)
            .field("source", &self.0.source)
            .finish()
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.message.is_empty() {
            self.0.kind.fmt(f)
        } else {
            write!(f, "{}: {}", self.0.kind, self.0.message)
        }
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0
            .source
            .as_deref()
            .map(|source| source as &(dyn Error + 'static))
    }
}

impl From<InvalidKey> for StoreError {
    fn from(refused: InvalidKey) -> Self {
        Self::new(StoreErrorKind::InvalidKey, refused.to_string()).with_source(refused)
    }
}

/// What went wrong in a store. Each kind says what is true of claim and effects afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// No connection could be had, or it was lost before the commit. Nothing happened.
    Unavailable,
    /// Another delivery of the event held its key for all of `wait`; on a single-writer database,
    /// another event held the writer. Nothing happened here; the other may still roll back, so this
    /// is never a duplicate.
    InFlight,
    /// A serialization failure or deadlock. Everything was rolled back; a new try may succeed.
    Conflict,
    /// The key is outside the limits. Nothing happened.
    InvalidKey,
    /// The claim table is missing, unfit, or the server's settings would lose acknowledged events.
    /// Nothing happened; the message names the fix.
    Schema,
    /// `apply` ended or replaced the transaction, so that its effects and the claim no longer stand
    /// or fall together. This is a bug in `apply`.
    TransactionEnded {
        /// What became of the claim.
        claim: ClaimFate,
    },
    /// A statement failed, `apply` hid it and returned `Ok`, and the database refuses to commit
    /// such a transaction. Everything was rolled back.
    TransactionDoomed,
    /// The database refused the COMMIT for good, for example by a deferred constraint. Everything
    /// was rolled back.
    CommitRefused,
    /// Whether the COMMIT took place is not known. Claim and effects are both there or both absent;
    /// the next delivery finds out and is right either way.
    CommitUnknown,
    /// `apply` took longer than the handler's limit. Everything was rolled back.
    ApplyTimedOut,
    /// The database or its settings can't do what was asked.
    Unsupported,
    /// Anything else that the database reported. Nothing was committed.
    Other,
}

impl StoreErrorKind {
    /// Whether the same delivery may succeed later without a change to the code.
    ///
    /// ```
    /// use onceonly::StoreErrorKind;
    ///
    /// assert!(StoreErrorKind::InFlight.is_retryable());
    /// assert!(StoreErrorKind::CommitUnknown.is_retryable());
    /// assert!(!StoreErrorKind::CommitRefused.is_retryable());
    /// ```
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        matches!(
            self,
            Self::Unavailable
                | Self::InFlight
                | Self::Conflict
                | Self::Schema
                | Self::CommitUnknown
                | Self::ApplyTimedOut
        )
    }
}

impl fmt::Display for StoreErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unavailable => "database unavailable",
            Self::InFlight => "event is in flight elsewhere",
            Self::Conflict => "transaction conflict",
            Self::InvalidKey => "invalid key",
            Self::Schema => "schema or settings unfit",
            Self::TransactionEnded {
                claim: ClaimFate::Durable,
            } => "apply ended the transaction and the claim is durable",
            Self::TransactionEnded {
                claim: ClaimFate::Absent,
            } => "apply ended the transaction and the claim is absent",
            Self::TransactionEnded {
                claim: ClaimFate::Unknown,
            } => "apply ended the transaction and the claim's fate is unknown",
            Self::TransactionDoomed => "apply hid a statement error that doomed the transaction",
            Self::CommitRefused => "commit refused",
            Self::CommitUnknown => "outcome of the commit is unknown",
            Self::ApplyTimedOut => "apply timed out",
            Self::Unsupported => "unsupported",
            Self::Other => "database error",
        })
    }
}

/// What became of a claim whose transaction `apply` ended, found by reading it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ClaimFate {
    /// It is committed: the next delivery is a duplicate, whatever became of the effects.
    Durable,
    /// It is gone, or the store rolled it back when it found out: the next delivery is processed, on
    /// top of effects that `apply` may have committed.
    Absent,
    /// It could not be read again.
    Unknown,
}
