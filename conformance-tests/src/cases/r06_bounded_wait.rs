//! R6: `wait` is a total, and then the answer is `InFlight`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use onceonly::{Claim, ClaimStore, Handler, StoreError, StoreErrorKind};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::world::{PATIENT, World, begun, claimed, event, kind, must};
use crate::{Harness, HarnessError, StoreOptions};

/// Together they hold the key for longer than the bound on the wait of the one behind them.
const HOLDERS: u32 = 10;

/// An upper bound of five times the promise, and room for a round trip.
fn is_bounded(started: Instant, wait: Duration) {
    let (waited, bound) = (started.elapsed(), 5 * wait.max(Duration::from_millis(500)));
    assert!(waited <= bound, "a wait of {wait:?} took {waited:?}");
}

pub(crate) async fn r6_wait_elapsed_is_in_flight<H: Harness>() {
    let world = World::<H>::new().await;
    let store = world.open(4).await;
    let event = event("r6");
    let tx = claimed(&*store, &event).await;
    for wait in [50, 300, 1_200].map(Duration::from_millis) {
        let started = Instant::now();
        let answer = kind(store.claim(&event, wait).await, "a claim of a held key");
        assert_eq!(answer, StoreErrorKind::InFlight, "after a wait of {wait:?}");
        is_bounded(started, wait);
    }
    must(store.commit(tx).await, "committing");
    world.expect(&event, 1, "acme", 0).await;
    world.done().await;
}

pub(crate) async fn r6_zero_wait_tries_once<H: Harness>() {
    let world = World::<H>::new().await;
    let store = world.open(4).await;
    let event = event("r6");
    let tx = claimed(&*store, &event).await;
    let started = Instant::now();
    let answer = kind(
        store.claim(&event, Duration::ZERO).await,
        "a claim of a held key",
    );
    assert_eq!(answer, StoreErrorKind::InFlight, "after no wait");
    is_bounded(started, Duration::ZERO);
    must(store.rollback(tx).await, "rolling back");
    world.done().await;
}

pub(crate) async fn r6_zero_wait_claims_a_free_key<H: Harness>() {
    let world = World::<H>::new().await;
    let store = world.open(2).await;
    for id in ["a", "b", "c"] {
        let answer = must(
            store.claim(&event(id), Duration::ZERO).await,
            "claiming without a wait",
        );
        match answer {
            Claim::Fresh(tx) => must(store.commit(tx).await, "committing"),
            Claim::Duplicate(_) => panic!("{id} was never claimed"),
        }
        let again = must(
            store.claim(&event(id), Duration::ZERO).await,
            "claiming again",
        );
        assert!(again.is_duplicate(), "{id} was claimed twice");
    }
    world.done().await;
}

pub(crate) async fn r6_maximal_wait_does_not_overflow<H: Harness>() {
    let world = World::<H>::new().await;
    let store = world.open(4).await;
    let event = event("r6");
    let tx = match must(
        store.claim(&event, Duration::MAX).await,
        "claiming with a maximal wait",
    ) {
        Claim::Fresh(tx) => tx,
        Claim::Duplicate(_) => panic!("the key was never claimed"),
    };
    let waiting = {
        let (store, event) = (Arc::clone(&store), event.clone());
        tokio::spawn(async move { store.claim(&event, Duration::MAX).await.map(drop) })
    };
    if H::capabilities().single_primary {
        world.until_waiting(1).await;
    }
    must(store.commit(tx).await, "committing");
    must(
        must(waiting.await, "waiting"),
        "claiming with a maximal wait",
    );
    world.done().await;
}

pub(crate) async fn r6_chain_of_holders_does_not_extend_the_wait<H: Harness>() {
    let world = World::<H>::new().await;
    let store = world.open(12).await;
    let event = event("r6");
    let first = claimed(&*store, &event).await;
    let mut holders = JoinSet::new();
    for _ in 0..HOLDERS {
        let (store, event) = (Arc::clone(&store), event.clone());
        holders.spawn(async move {
            let tx = claimed(&*store, &event).await;
            sleep(Duration::from_millis(500)).await;
            must(store.rollback(tx).await, "rolling back");
        });
    }
    world.until_waiting(HOLDERS).await;
    let wait = Duration::from_millis(600);
    let started = Instant::now();
    let racer = {
        let (store, event) = (Arc::clone(&store), event.clone());
        tokio::spawn(async move {
            let answer = store.claim(&event, wait).await;
            is_bounded(started, wait);
            match answer {
                Ok(Claim::Fresh(tx)) => must(store.rollback(tx).await, "rolling back"),
                Ok(Claim::Duplicate(_)) => panic!("nothing was ever committed"),
                Err(error) => assert_eq!(error.kind(), StoreErrorKind::InFlight, "{error}"),
            }
        })
    };
    must(store.rollback(first).await, "rolling the first back");
    must(racer.await, "racing with a short wait");
    holders.join_all().await;
    world.process(&store, &event, "acme").await;
    world.expect(&event, 1, "acme", 1).await;
    world.done().await;
}

pub(crate) async fn r6_timed_out_claim_leaves_a_usable_connection<H: Harness>() {
    let world = World::<H>::new().await;
    let store = world.open(2).await;
    let held = event("held");
    let tx = claimed(&*store, &held).await;
    for turn in 0..3 {
        let answer = store.claim(&held, Duration::from_millis(100)).await;
        assert_eq!(
            kind(answer, "a claim of a held key"),
            StoreErrorKind::InFlight
        );
        if H::capabilities().concurrent_keys {
            let other = event(&format!("other/{turn}"));
            let claim = store.claim(&other, PATIENT).await;
            match must(
                claim,
                "claiming another key on the connection that timed out",
            ) {
                Claim::Fresh(tx) => must(store.commit(tx).await, "committing another key"),
                Claim::Duplicate(_) => panic!("{other:?} was never claimed"),
            }
        }
    }
    must(store.commit(tx).await, "committing the holder");
    world.process(&store, &event("last"), "acme").await;
    world.done().await;
}

pub(crate) async fn r6_wait_counts_the_queue_of_a_handler<H: Harness>() {
    let world = World::<H>::new().await;
    let (holder, store) = (world.open(1).await, world.open(4).await);
    let handler = Handler::new(store).with_wait(Duration::from_secs(1));
    let event = event("r6");
    let tx = claimed(&*holder, &event).await;
    let mut deliveries = JoinSet::new();
    for _ in 0..4 {
        let (handler, event) = (handler.clone(), event.clone());
        deliveries.spawn(async move {
            let started = Instant::now();
            let apply = async |_: &mut _| Ok::<_, HarnessError>(());
            let answer = handler.handle(&event, apply).await;
            is_bounded(started, Duration::from_secs(1));
            match answer {
                Ok(outcome) => panic!("a held event came out as {outcome:?}"),
                Err(error) => error.as_store().map(StoreError::kind),
            }
        });
    }
    for answer in deliveries.join_all().await {
        assert_eq!(
            answer,
            Some(StoreErrorKind::InFlight),
            "a delivery of a held event"
        );
    }
    assert_eq!(handler.in_flight(), 0, "keys in the handler's queue");
    must(holder.rollback(tx).await, "rolling back");
    world.process(handler.store(), &event, "acme").await;
    world.done().await;
}

pub(crate) async fn r6_wait_in_the_queue_of_a_handler_ends<H: Harness>() {
    let world = World::<H>::new().await;
    let handler = Handler::new(world.open(2).await).with_wait(PATIENT);
    let event = event("r6");
    let open = begun(&handler, &event).await;
    for wait in [0, 300].map(Duration::from_millis) {
        let started = Instant::now();
        let behind = handler.clone().with_wait(wait);
        let begun = timeout(PATIENT, behind.begin(&event)).await;
        let answer = must(begun, "waiting in the queue of a handler");
        assert_eq!(
            kind(answer, "a delivery behind an open one"),
            StoreErrorKind::InFlight
        );
        is_bounded(started, wait);
    }
    must(open.commit().await, "committing");
    world.expect(&event, 1, "acme", 0).await;
    world.done().await;
}

pub(crate) async fn r6_claim_without_a_free_connection_ends<H: Harness>() {
    let world = World::<H>::new().await;
    let mut options = StoreOptions::with_connections(1);
    options.acquire_timeout = Duration::from_millis(500);
    let store = world.open_with(&options).await;
    let tx = claimed(&*store, &event("held")).await;
    let started = Instant::now();
    let answer = store
        .claim(&event("other"), Duration::from_millis(500))
        .await;
    is_bounded(started, Duration::from_secs(1));
    match answer {
        // A store without a pool.
        Ok(Claim::Fresh(other)) => drop(other),
        Ok(Claim::Duplicate(_)) => panic!("a key that was never claimed is a duplicate"),
        Err(error) => assert!(
            matches!(
                error.kind(),
                StoreErrorKind::Unavailable | StoreErrorKind::InFlight
            ),
            "no connection was free, and the answer is {error:?}"
        ),
    }
    must(store.rollback(tx).await, "rolling back");
    world.process(&store, &event("other"), "acme").await;
    world.done().await;
}
