//! Why a delivery was neither processed nor a duplicate.

use std::error::Error;
use std::fmt;

use crate::StoreError;

/// Why a delivery was neither processed nor a duplicate: let the provider retry.
#[derive(Debug)]
#[non_exhaustive]
pub enum HandleError<E> {
    /// `apply` returned this error. Claim and effects were rolled back, and the next delivery is
    /// processed.
    Apply(E),
    /// The store failed; the [kind](crate::StoreErrorKind) says what is true of claim and effects.
    Store(StoreError),
}

impl<E> HandleError<E> {
    /// The store's error, if it was not `apply` that failed.
    ///
    /// ```
    /// use onceonly::{HandleError, StoreError, StoreErrorKind};
    ///
    /// let error = HandleError::<std::io::Error>::from(StoreError::new(StoreErrorKind::InFlight, ""));
    /// assert!(error.as_store().is_some_and(StoreError::is_retryable));
    /// ```
    pub const fn as_store(&self) -> Option<&StoreError> {
        match self {
            Self::Apply(_) => None,
            Self::Store(error) => Some(error),
        }
    }
}

impl<E> From<StoreError> for HandleError<E> {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl<E: fmt::Display> fmt::Display for HandleError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Apply(error) => write!(f, "apply failed: {error}"),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl<E: Error + 'static> Error for HandleError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Apply(error) => error.source(),
            Self::Store(error) => error.source(),
        }
    }
}
