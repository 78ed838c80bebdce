//! Choices with a name.

/// The isolation level of claims' transactions.
///
/// The claim is right under each. Under the two stricter ones a claim that raced with another of
/// its key is tried again inside, and `apply` may meet serialization failures, which are retryable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Isolation {
    /// Each statement sees what was committed before it.
    #[default]
    ReadCommitted,
    /// All statements see what was committed before the claim.
    RepeatableRead,
    /// As if transactions ran one after the other; COMMIT itself can be a conflict.
    Serializable,
}

impl Isolation {
    pub(crate) const fn sql(self) -> &'static str {
        match self {
            Self::ReadCommitted => "READ COMMITTED",
            Self::RepeatableRead => "REPEATABLE READ",
            Self::Serializable => "SERIALIZABLE",
        }
    }
}

/// What can make the server forget an event that it acknowledged, after a power failure or crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum UnsafeSetting {
    /// `fsync = off`.
    FsyncOff,
    /// `full_page_writes = off`. Harmless on a file system that never tears a page.
    FullPageWritesOff,
    /// `synchronous_commit = off`: the last commits before a crash are lost, claims and effects
    /// together.
    SynchronousCommitOff,
    /// The claim table is UNLOGGED: a crash empties it, and old events would be processed again.
    UnloggedTable,
}
