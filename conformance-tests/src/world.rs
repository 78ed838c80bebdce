//! One case's world, and what every case does in it.

use std::fmt::Debug;
use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};

use onceonly::{Claim, ClaimGuard, ClaimStore, Event, Handler, StoreError, StoreErrorKind};
use tokio::time::timeout;

use crate::proxy::Proxy;
use crate::{Harness, StoreOptions, steps};

/// Long enough that only a hang outlasts it.
pub(crate) const PATIENT: Duration = Duration::from_secs(30);

pub(crate) type Tx<H> = <<H as Harness>::Store as ClaimStore>::Tx;

/// One case's world.
pub(crate) struct World<H>(Arc<H>);

impl<H> Clone for World<H> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<H> Deref for World<H> {
    type Target = H;

    fn deref(&self) -> &H {
        &self.0
    }
}

/// Takes the value or fails the case, saying what it was doing.
pub(crate) fn must<T, E: Debug>(result: Result<T, E>, doing: &str) -> T {
    match result {
        Ok(value) => {
            steps::finished(doing);
            value
        }
        Err(error) => panic!("{doing}: {error:?}"),
    }
}

impl<H: Harness> World<H> {
    pub(crate) async fn new() -> Self {
        Self::of(H::setup().await)
    }

    pub(crate) fn of(harness: Result<H, crate::HarnessError>) -> Self {
        let world = Arc::new(must(harness, "setting the world up"));
        steps::watch(&world);
        Self(world)
    }

    /// Removes the world of a case that passed.
    pub(crate) async fn done(self) {
        if let Some(harness) = Arc::into_inner(self.0) {
            must(harness.teardown().await, "removing the world");
        }
    }

    /// A store with this many connections.
    pub(crate) async fn open(&self, connections: u32) -> Arc<H::Store> {
        self.open_with(&StoreOptions::with_connections(connections))
            .await
    }

    pub(crate) async fn open_with(&self, options: &StoreOptions) -> Arc<H::Store> {
        Arc::new(must(self.store(options).await, "opening a store"))
    }

    /// A store that reaches its server through a proxy.
    pub(crate) async fn open_behind_a_proxy(&self, connections: u32) -> (Proxy, Arc<H::Store>) {
        let server = must(
            self.server_addr().ok_or("no address"),
            "asking where the server is",
        );
        let proxy = must(Proxy::start(server).await, "starting a proxy");
        let mut options = StoreOptions::with_connections(connections);
        options.via = Some(proxy.addr());
        let store = self.open_with(&options).await;
        (proxy, store)
    }

    /// Runs an effect for `account` inside the transaction.
    pub(crate) async fn credit(&self, tx: &mut Tx<H>, account: &str) {
        must(
            self.effect(tx, account).await,
            "running an effect inside the claim's transaction",
        );
    }

    /// Starts a slow statement inside the transaction, and drops it.
    pub(crate) async fn drop_slow_statement(&self, tx: &mut Tx<H>) {
        let slow = timeout(Duration::from_millis(100), self.slow_statement(tx, 1)).await;
        assert!(slow.is_err(), "the slow statement was not slow");
    }

    /// Claims, credits `account` once, and commits.
    pub(crate) async fn process(&self, store: &H::Store, event: &Event, account: &str) {
        let mut tx = claimed(store, event).await;
        self.credit(&mut tx, account).await;
        must(store.commit(tx).await, "committing");
    }

    /// Compares what is committed, as seen from outside.
    pub(crate) async fn expect(&self, event: &Event, claims: u64, account: &str, effects: u64) {
        let seen = self.committed(event, account).await;
        assert_eq!(
            seen,
            (claims, effects),
            "committed (claims, effects) of {event:?}: seen {seen:?}, expected {:?}",
            (claims, effects)
        );
    }

    /// Committed claims of `event` and effects for `account`, as seen from outside.
    pub(crate) async fn committed(&self, event: &Event, account: &str) -> (u64, u64) {
        let claims = must(self.claims(event).await, "counting claims from outside");
        let effects = must(self.effects(account).await, "counting effects from outside");
        (claims, effects)
    }

    /// Returns when this many claims wait for another transaction.
    pub(crate) async fn until_waiting(&self, count: u32) {
        let started = Instant::now();
        loop {
            let waiting = must(self.waiting().await, "asking who waits");
            if waiting >= count {
                return;
            }
            assert!(
                started.elapsed() < PATIENT / 2,
                "claims that wait for another transaction: {waiting} after {:?}, expected {count}",
                PATIENT / 2
            );
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

pub(crate) fn event(id: &str) -> Event {
    must(Event::new("conformance", id), "an event of the suite")
}

/// Claims a key that must be free.
pub(crate) async fn claimed<S: ClaimStore>(store: &S, event: &Event) -> S::Tx {
    match must(store.claim(event, PATIENT).await, "claiming a free key") {
        Claim::Fresh(tx) => tx,
        Claim::Duplicate(_) => panic!("{event:?} is free, and its claim is said to be a duplicate"),
    }
}

/// Begins a delivery of a key that must be free.
pub(crate) async fn begun<S: ClaimStore>(handler: &Handler<S>, event: &Event) -> ClaimGuard<S> {
    match must(handler.begin(event).await, "beginning a delivery") {
        Claim::Fresh(claim) => claim,
        Claim::Duplicate(_) => {
            panic!("{event:?} is free, and its delivery is said to be a duplicate")
        }
    }
}

/// Claims a key that must be claimed and committed.
pub(crate) async fn duplicate<S: ClaimStore>(store: &S, event: &Event) {
    match must(
        store.claim(event, PATIENT).await,
        "claiming a key that is claimed",
    ) {
        Claim::Duplicate(_) => {}
        Claim::Fresh(_) => panic!("{event:?} has a committed claim, and it was claimed again"),
    }
}

/// The kind of the error that must have come; the log of a failed case has all of it.
pub(crate) fn kind<T>(result: Result<T, StoreError>, what: &str) -> StoreErrorKind {
    match result {
        Ok(_) => panic!("{what} succeeded"),
        Err(error) => {
            println!("{what}: {error:?}");
            error.kind()
        }
    }
}
