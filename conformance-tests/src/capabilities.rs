//! What a backend declares that it can or can't do.

/// Abilities that decide which cases run. Each of the rules R1 to R9 keeps cases that none of them
/// skips.
///
/// A finished backend starts from [`Capabilities::all`] and sets to `false` what its *database* can't
/// do; one that is being written starts from [`Capabilities::minimal`]. A skip is printed with its
/// reason.
///
/// ```
/// use onceonly_conformance::Capabilities;
///
/// let mut capabilities = Capabilities::all();
/// capabilities.dooming = false; // a failed statement leaves the transaction alive
/// assert!(capabilities.savepoints);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// Claims of two different keys can be open at the same time (not on a single-writer database).
    pub concurrent_keys: bool,
    /// A second store on the same world sees the same claims, as a second process does.
    pub second_store: bool,
    /// The harness counts the store's connections.
    pub connections: bool,
    /// A transaction has savepoints.
    pub savepoints: bool,
    /// A statement can be in flight while its future is dropped.
    pub slow_statement: bool,
    /// A failed statement dooms the transaction that it ran in.
    pub dooming: bool,
    /// `apply` can end its own transaction.
    pub escapes: bool,
    /// Deadlocks or serialization failures can happen inside `apply`.
    pub conflicts: bool,
    /// COMMIT itself can fail with a serialization failure or deadlock.
    pub commit_conflicts: bool,
    /// COMMIT itself can be refused.
    pub deferred_constraints: bool,
    /// The harness can open a store whose database has another clock than this machine.
    pub clock: bool,
    /// The database is reached over TCP.
    pub network: bool,
    /// The backend has a schema and migrates it.
    pub migrations: bool,
    /// The backend checks schema and settings.
    pub checks: bool,
    /// Committed data outlives a kill of the server.
    pub restart: bool,
    /// One writable node: a racing claim waits. `false` for a multi-writer cluster, where the loser
    /// gets a retryable conflict instead.
    pub single_primary: bool,
}

impl Capabilities {
    /// Everything.
    #[must_use]
    pub const fn all() -> Self {
        Self {
            concurrent_keys: true,
            second_store: true,
            connections: true,
            savepoints: true,
            slow_statement: true,
            dooming: true,
            escapes: true,
            conflicts: true,
            commit_conflicts: true,
            deferred_constraints: true,
            clock: true,
            network: true,
            migrations: true,
            checks: true,
            restart: true,
            single_primary: true,
        }
    }

    /// Nothing but the contract's core: what an in-memory store can show.
    #[must_use]
    pub const fn minimal() -> Self {
        Self {
            concurrent_keys: true,
            second_store: false,
            connections: false,
            savepoints: false,
            slow_statement: false,
            dooming: false,
            escapes: false,
            conflicts: false,
            commit_conflicts: false,
            deferred_constraints: false,
            clock: false,
            network: false,
            migrations: false,
            checks: false,
            restart: false,
            single_primary: true,
        }
    }
}
