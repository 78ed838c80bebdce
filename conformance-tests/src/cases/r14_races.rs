//! R14: pruning beside claims and beside other pruners.

use std::sync::Arc;
use std::time::Duration;

use onceonly::{Claim, ClaimStore, StoreErrorKind};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::r14_prune::{DAY, aged, processed, prune};
use crate::world::{PATIENT, World, claimed, event, must};
use crate::{Harness, StoreOptions};

pub(crate) async fn r14_pruning_beside_claims_never_fails<H: Harness>() {
    let world = World::<H>::new().await;
    let (claiming, pruning) = (world.open(4).await, world.open(1).await);
    processed(&world, &claiming, "old", 60).await;
    aged(&world, "old", 60, 31 * DAY).await;
    let mut claims = JoinSet::new();
    for worker in 0..4 {
        let store = Arc::clone(&claiming);
        claims.spawn(async move {
            for turn in 0..30 {
                // Half of them are keys that are being pruned.
                let id = match turn % 2 {
                    0 => format!("old/{}", worker * 15 + turn / 2),
                    _ => format!("new/{worker}/{turn}"),
                };
                match must(
                    store.claim(&event(&id), PATIENT).await,
                    "claiming beside a prune",
                ) {
                    Claim::Fresh(tx) if turn % 3 == 0 => must(store.rollback(tx).await, "rollback"),
                    Claim::Fresh(tx) => must(store.commit(tx).await, "committing beside a prune"),
                    Claim::Duplicate(_) => {}
                }
            }
        });
    }
    while prune(&*pruning, 30 * DAY, 7).await > 0 {}
    claims.join_all().await;
    assert_eq!(prune(&*pruning, 30 * DAY, 100).await, 0, "old claims left");
    world.done().await;
}

pub(crate) async fn r14_two_pruners_prune_each_claim_once<H: Harness>() {
    let world = World::<H>::new().await;
    let stores = [world.open(1).await, world.open(1).await];
    processed(&world, &stores[0], "old", 40).await;
    aged(&world, "old", 40, 31 * DAY).await;
    let mut pruners = JoinSet::new();
    for store in stores {
        pruners.spawn(async move {
            let mut pruned = 0;
            // What the other one is deleting may be left out of a batch.
            for _ in 0..40 {
                pruned += prune(&*store, 30 * DAY, 3).await;
            }
            pruned
        });
    }
    let pruned: u64 = pruners.join_all().await.into_iter().sum();
    assert_eq!(
        pruned, 40,
        "claims that two pruners together say they pruned"
    );
    world.expect(&event("old/0"), 0, "old", 40).await;
    world.done().await;
}

/// A key that a pruner has picked may be pruned by another one and claimed again before it gets
/// there: the new claim is young and stays.
pub(crate) async fn r14_key_claimed_again_beside_pruners_stays<H: Harness>() {
    const KEYS: u32 = 24;
    let world = World::<H>::new().await;
    let store = world.open(6).await;
    for round in 0..4 {
        let account = format!("round{round}");
        processed(&world, &store, &account, KEYS).await;
        aged(&world, &account, KEYS, 31 * DAY).await;
        let mut racing = JoinSet::new();
        for _ in 0..2 {
            let store = Arc::clone(&store);
            racing.spawn(async move { while prune(&*store, 30 * DAY, 5).await > 0 {} });
        }
        for worker in 0..3 {
            let (store, account) = (Arc::clone(&store), account.clone());
            racing.spawn(async move {
                for id in (worker..KEYS).step_by(3) {
                    claim_again(&*store, &format!("{account}/{id}")).await;
                }
            });
        }
        racing.join_all().await;
        for id in 0..KEYS {
            let event = event(&format!("{account}/{id}"));
            let claims = must(world.claims(&event).await, "counting claims from outside");
            assert_eq!(claims, 1, "{event:?} was claimed again, and that is young");
        }
    }
    world.done().await;
}

/// Claims as soon as the old claim is pruned.
async fn claim_again<S: ClaimStore>(store: &S, id: &str) {
    let event = event(id);
    let claiming = async {
        loop {
            match must(
                store.claim(&event, PATIENT).await,
                "claiming beside pruners",
            ) {
                Claim::Fresh(tx) => break must(store.commit(tx).await, "committing"),
                Claim::Duplicate(_) => tokio::task::yield_now().await,
            }
        }
    };
    must(
        timeout(PATIENT, claiming).await,
        "waiting for an old claim to be pruned",
    );
}

/// Where an open claim holds the only writer, a prune may end without having done its work, but
/// never says that nothing was left.
pub(crate) async fn r14_prune_behind_an_open_claim_tells_no_lie<H: Harness>() {
    let world = World::<H>::new().await;
    let mut options = StoreOptions::with_connections(2);
    options.acquire_timeout = Duration::from_millis(500);
    let store = world.open_with(&options).await;
    processed(&world, &store, "old", 5).await;
    aged(&world, "old", 5, 31 * DAY).await;
    let open = claimed(&*store, &event("open")).await;
    let pruned = timeout(PATIENT, store.prune(30 * DAY, 100)).await;
    let left = match must(pruned, "waiting for a prune to end") {
        Ok(5) => 0,
        Ok(count) => panic!("{count} claims pruned beside an open one, of 5 that were old"),
        Err(error) => {
            assert!(
                matches!(
                    error.kind(),
                    StoreErrorKind::InFlight | StoreErrorKind::Unavailable
                ),
                "a prune that could not have the writer: {error:?}"
            );
            5
        }
    };
    must(store.commit(open).await, "committing beside a prune");
    assert_eq!(prune(&*store, 30 * DAY, 100).await, left, "claims pruned");
    world.done().await;
}
