//! The failures that a delivery's `apply` has planted in it.

use std::fmt;

use crate::Failure;

/// What `apply` returns.
#[derive(Debug)]
pub(super) enum ApplyError {
    /// As planned.
    Planted,
    /// A statement was dropped, as planned.
    OwnTimeout,
    /// A statement failed, and nobody planned that.
    Statement(Failure),
}

impl fmt::Display for ApplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Planted => f.write_str("planted"),
            Self::OwnTimeout => f.write_str("a statement took too long"),
            Self::Statement(failure) => write!(f, "a statement failed: {failure:?}"),
        }
    }
}

impl std::error::Error for ApplyError {}

/// What `apply` unwinds with. The panic hook doesn't see it, so it stays out of the output.
pub(super) struct PlantedPanic;
