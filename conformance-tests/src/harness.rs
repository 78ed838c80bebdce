//! What a backend tells and gives the suite.

use std::net::SocketAddr;
use std::time::Duration;

use async_trait::async_trait;
use onceonly::{ClaimFate, ClaimStore, Event, StoreError};

use crate::Capabilities;

/// Any error of a harness, or of a statement that it ran inside a claim's transaction.
pub type HarnessError = Box<dyn std::error::Error + Send + Sync>;

/// How a case wants its store.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StoreOptions {
    /// Connections in the pool, at most. A single-writer store may ignore it.
    pub connections: u32,
    /// How long to wait for a connection.
    pub acquire_timeout: Duration,
    /// A fixed offset from UTC in hours to which every session of the pool is set, if the database
    /// has session time zones (rule R14).
    pub time_zone: Option<i8>,
    /// By how many hours the database's clock differs from the machine's in every session of the
    /// pool, if the harness can bring that about (rule R14).
    pub clock: Option<i8>,
    /// Connect to this address instead of the server's own: a proxy that the suite started.
    pub via: Option<SocketAddr>,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            connections: 8,
            acquire_timeout: Duration::from_secs(5),
            time_zone: None,
            clock: None,
            via: None,
        }
    }
}

impl StoreOptions {
    /// The defaults with this many connections.
    #[must_use]
    pub fn with_connections(connections: u32) -> Self {
        Self {
            connections,
            ..Self::default()
        }
    }
}

/// One way in which `apply` can end or replace its transaction (rule R11).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Escape {
    /// The statement, as printed when the case fails: `COMMIT AND CHAIN`.
    pub name: &'static str,
    /// What has become of the claim once `apply` returns.
    pub claim: ClaimFate,
}

/// An isolated database of one backend: the claim table, and a ledger beside it for effects.
///
/// One value is one case's world: nothing that another case does is seen in it. The methods that
/// look ("from outside") use connections of the harness's own, never the store's.
///
/// The future of a method that is given a `tx` may be dropped at any await, as `apply` may. All others
/// run to their end.
///
/// Methods with a body are asked only when [`capabilities`](Harness::capabilities) declares what
/// they serve; a case that meets the default body fails and names the method.
#[async_trait]
pub trait Harness: Sized + Send + Sync + 'static {
    /// The store under test.
    type Store: ClaimStore + 'static;

    /// What the backend can do. Whatever is `false` is skipped, and the skip is printed.
    fn capabilities() -> Capabilities;

    /// A new isolated world, its schema migrated and its ledger empty.
    async fn setup() -> Result<Self, HarnessError>;

    /// Opens a store on this world, as another process would: own pool, own connections.
    async fn store(&self, options: &StoreOptions) -> Result<Self::Store, HarnessError>;

    /// Inserts one row into the ledger inside `tx`. Several rows per account are allowed.
    async fn effect(
        &self,
        tx: &mut <Self::Store as ClaimStore>::Tx,
        account: &str,
    ) -> Result<(), HarnessError>;

    /// Committed ledger rows of `account`, from outside.
    async fn effects(&self, account: &str) -> Result<u64, HarnessError>;

    /// Committed claims of `event`, from outside: 0 or 1.
    async fn claims(&self, event: &Event) -> Result<u64, HarnessError>;

    /// Makes the committed claim of `event` older by `by`, from outside.
    async fn age(&self, event: &Event, by: Duration) -> Result<(), HarnessError>;

    /// How many claims of this world wait for another transaction right now, from outside where the
    /// database tells (`pg_stat_activity`, `innodb_trx`), else as the store counts them.
    async fn waiting(&self) -> Result<u32, HarnessError>;

    /// Who waits for whom, for the message of a case whose deadline passes: as much as the database
    /// tells.
    async fn waits(&self) -> Result<String, HarnessError> {
        Ok(format!("{} claims wait", self.waiting().await?))
    }

    /// Opens connections of this world's stores, idle ones included. (`connections`)
    async fn connections(&self) -> Result<u32, HarnessError> {
        missing("connections")
    }

    /// Inside `tx`, sets a savepoint, inserts a ledger row for `account`, runs a statement that fails
    /// if there is such a thing, and rolls back to the savepoint. (`savepoints`)
    async fn savepoint(
        &self,
        tx: &mut <Self::Store as ClaimStore>::Tx,
        account: &str,
    ) -> Result<(), HarnessError> {
        let _ = (tx, account);
        missing("savepoint")
    }

    /// Inside `tx`, starts a statement that runs for about `seconds` or waits that long, and is
    /// cancellable by dropping the future. (`slow_statement`)
    async fn slow_statement(
        &self,
        tx: &mut <Self::Store as ClaimStore>::Tx,
        seconds: u32,
    ) -> Result<(), HarnessError> {
        let _ = (tx, seconds);
        missing("slow_statement")
    }

    /// Inside `tx`, runs a statement that fails and hides its error. (`dooming`)
    async fn doom(&self, tx: &mut <Self::Store as ClaimStore>::Tx) -> Result<(), HarnessError> {
        let _ = tx;
        missing("doom")
    }

    /// Every way in which `apply` can end or replace its transaction on this database. (`escapes`)
    fn escapes() -> &'static [Escape] {
        &[]
    }

    /// Runs the statements of one of [`escapes`](Harness::escapes) inside `tx`.
    async fn escape(
        &self,
        tx: &mut <Self::Store as ClaimStore>::Tx,
        escape: &Escape,
    ) -> Result<(), HarnessError> {
        let _ = (tx, escape);
        missing("escape")
    }

    /// Brings `tx` into a real deadlock or serialization failure with a connection of the
    /// harness's own, and returns the error that the driver gave in `tx`. (`conflicts`)
    async fn conflict(
        &self,
        tx: &mut <Self::Store as ClaimStore>::Tx,
    ) -> Result<HarnessError, HarnessError> {
        let _ = tx;
        missing("conflict")
    }

    /// Brings `tx` into a state in which its COMMIT fails with a serialization failure or deadlock.
    /// (`commit_conflicts`)
    async fn conflict_at_commit(
        &self,
        tx: &mut <Self::Store as ClaimStore>::Tx,
    ) -> Result<(), HarnessError> {
        let _ = tx;
        missing("conflict_at_commit")
    }

    /// Inside `tx`, does what makes its COMMIT fail for good, such as breaking a deferred
    /// constraint. (`deferred_constraints`)
    async fn refuse_commit(
        &self,
        tx: &mut <Self::Store as ClaimStore>::Tx,
    ) -> Result<(), HarnessError> {
        let _ = tx;
        missing("refuse_commit")
    }

    /// Where the server listens (TCP). The suite puts a proxy before it and gives its address back
    /// in [`StoreOptions::via`]. (`network`)
    fn server_addr(&self) -> Option<SocketAddr> {
        None
    }

    /// A new isolated world whose schema was never migrated. (`migrations`)
    async fn setup_empty() -> Result<Self, HarnessError> {
        missing("setup_empty")
    }

    /// Runs the backend's `migrate`. (`migrations`)
    async fn migrate(&self, store: &Self::Store) -> Result<(), StoreError> {
        let _ = store;
        Err(StoreError::new(
            onceonly::StoreErrorKind::Unsupported,
            "harness lacks `migrate`",
        ))
    }

    /// Changes what the database recorded of an applied migration, as if its file had been edited.
    /// (`migrations`)
    async fn tamper(&self) -> Result<(), HarnessError> {
        missing("tamper")
    }

    /// Makes the schema look newer than this version, compatible with it or not. (`migrations`)
    async fn advance_schema(&self, compatible: bool) -> Result<(), HarnessError> {
        let _ = compatible;
        missing("advance_schema")
    }

    /// Names of the unfit schemas and unsafe settings that the backend's `check` finds (rule R15):
    /// each makes a world unfit by [`spoil`](Harness::spoil). (`checks`)
    fn spoils() -> &'static [&'static str] {
        &[]
    }

    /// Makes this world unfit in one of the ways of [`spoils`](Harness::spoils).
    async fn spoil(&self, spoil: &str) -> Result<(), HarnessError> {
        let _ = spoil;
        missing("spoil")
    }

    /// A world on a server of its own that [`restart`](Harness::restart) may kill. (`restart`)
    async fn setup_restartable() -> Result<Self, HarnessError> {
        missing("setup_restartable")
    }

    /// Kills the world's server with SIGKILL and starts it again on the same data; for an embedded
    /// database, kills the process that holds the store. (`restart`)
    async fn restart(&self) -> Result<(), HarnessError> {
        missing("restart")
    }

    /// Removes the world. Called after a case passed; a failed case leaves it for inspection.
    async fn teardown(self) -> Result<(), HarnessError> {
        Ok(())
    }
}

fn missing<T>(method: &str) -> Result<T, HarnessError> {
    Err(format!("the capabilities declare it, but the harness lacks `{method}`").into())
}
