//! What a claim came to.

/// The answer to a claim: the key is ours and its transaction is open, or it was taken before.
#[derive(Debug)]
#[must_use = "a fresh claim that is dropped is rolled back"]
pub enum Claim<Tx> {
    /// The key was free. The claim's row is in this open transaction; dropping it rolls back.
    Fresh(Tx),
    /// A committed claim of this key exists. Nothing is open.
    Duplicate(Duplicate),
}

impl<Tx> Claim<Tx> {
    /// The open transaction, if the key was free.
    ///
    /// ```
    /// use onceonly::{Claim, Duplicate};
    ///
    /// assert_eq!(Claim::Fresh(7).fresh(), Some(7));
    /// assert_eq!(Claim::<u8>::Duplicate(Duplicate::new()).fresh(), None);
    /// ```
    #[must_use]
    pub fn fresh(self) -> Option<Tx> {
        match self {
            Self::Fresh(tx) => Some(tx),
            Self::Duplicate(_) => None,
        }
    }

    /// Whether a committed claim exists.
    #[must_use]
    pub const fn is_duplicate(&self) -> bool {
        matches!(self, Self::Duplicate(_))
    }
}

/// Proof that a *committed* claim of the event exists.
///
/// It carries nothing today; later versions may tell when the first delivery came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Duplicate {}

impl Duplicate {
    /// For stores: say it only after the database showed a committed claim (rule R4).
    #[must_use]
    pub const fn new() -> Self {
        Self {}
    }
}
