//! What became of a delivery.

use crate::Duplicate;

/// A delivery that needs no redelivery: answer the provider with 200 for both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome<T> {
    /// `apply` ran, and the database confirmed that its effects and the claim are committed.
    Processed(T),
    /// A committed claim of the event exists: an earlier delivery was processed. `apply` did not run.
    Duplicate(Duplicate),
}

impl<T> Outcome<T> {
    /// What `apply` returned, if it ran.
    ///
    /// ```
    /// use onceonly::{Duplicate, Outcome};
    ///
    /// assert_eq!(Outcome::Processed(7).processed(), Some(7));
    /// assert_eq!(Outcome::<u8>::Duplicate(Duplicate::new()).processed(), None);
    /// ```
    pub fn processed(self) -> Option<T> {
        match self {
            Self::Processed(value) => Some(value),
            Self::Duplicate(_) => None,
        }
    }

    /// Whether an earlier delivery was processed.
    #[must_use]
    pub const fn is_duplicate(&self) -> bool {
        matches!(self, Self::Duplicate(_))
    }
}
