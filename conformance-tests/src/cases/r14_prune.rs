//! R14: only old claims are pruned, by the database's clock, a few at a time.

use std::time::Duration;

use onceonly::ClaimStore;
use tokio::time::timeout;

use crate::world::{PATIENT, World, claimed, duplicate, event, must};
use crate::{Harness, StoreOptions};

const HOUR: Duration = Duration::from_secs(60 * 60);
pub(super) const DAY: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) async fn processed<H: Harness>(
    world: &World<H>,
    store: &H::Store,
    prefix: &str,
    count: u32,
) {
    for id in 0..count {
        world
            .process(store, &event(&format!("{prefix}/{id}")), prefix)
            .await;
    }
}

pub(super) async fn aged<H: Harness>(world: &World<H>, prefix: &str, count: u32, by: Duration) {
    for id in 0..count {
        must(
            world.age(&event(&format!("{prefix}/{id}")), by).await,
            "ageing a claim",
        );
    }
}

pub(super) async fn prune<S: ClaimStore>(store: &S, older_than: Duration, limit: u32) -> u64 {
    let pruned = timeout(PATIENT, store.prune(older_than, limit)).await;
    must(must(pruned, "waiting for a prune to end"), "pruning")
}

pub(crate) async fn r14_only_old_claims_are_pruned<H: Harness>() {
    let world = World::<H>::new().await;
    let store = world.open(2).await;
    processed(&world, &store, "old", 3).await;
    processed(&world, &store, "young", 3).await;
    aged(&world, "old", 3, 31 * DAY).await;
    aged(&world, "young", 3, 29 * DAY).await;
    assert_eq!(
        prune(&*store, Duration::MAX, 100).await,
        0,
        "claims pruned for ever back"
    );
    assert_eq!(prune(&*store, 30 * DAY, 100).await, 3, "claims pruned");
    assert_eq!(
        prune(&*store, 30 * DAY, 100).await,
        0,
        "claims pruned by a second call"
    );
    for id in 0..3 {
        world
            .expect(&event(&format!("old/{id}")), 0, "old", 3)
            .await;
        world
            .expect(&event(&format!("young/{id}")), 1, "young", 3)
            .await;
        duplicate(&*store, &event(&format!("young/{id}"))).await;
    }
    world.done().await;
}

pub(crate) async fn r14_at_most_the_limit_is_pruned<H: Harness>() {
    let world = World::<H>::new().await;
    let store = world.open(2).await;
    processed(&world, &store, "old", 25).await;
    aged(&world, "old", 25, 31 * DAY).await;
    let mut batches = Vec::new();
    for _ in 0..4 {
        batches.push(prune(&*store, 30 * DAY, 10).await);
    }
    assert_eq!(
        batches,
        [10, 10, 5, 0],
        "claims pruned by each call with a limit of 10"
    );
    assert_eq!(
        prune(&*store, 30 * DAY, 0).await,
        0,
        "claims pruned with a limit of 0"
    );
    world.done().await;
}

pub(crate) async fn r14_open_claims_are_neither_pruned_nor_waited_for<H: Harness>() {
    let world = World::<H>::new().await;
    let store = world.open(4).await;
    processed(&world, &store, "old", 5).await;
    aged(&world, "old", 5, 31 * DAY).await;
    let before = claimed(&*store, &event("a before the others")).await;
    let after = claimed(&*store, &event("z behind the others")).await;
    assert_eq!(
        prune(&*store, 30 * DAY, 100).await,
        5,
        "claims pruned beside open ones"
    );
    assert_eq!(
        prune(&*store, Duration::ZERO, 100).await,
        0,
        "open claims pruned"
    );
    must(store.commit(before).await, "committing beside a prune");
    must(store.commit(after).await, "committing beside a prune");
    duplicate(&*store, &event("a before the others")).await;
    duplicate(&*store, &event("z behind the others")).await;
    world.done().await;
}

pub(crate) async fn r14_pruned_key_is_claimed_again<H: Harness>() {
    let world = World::<H>::new().await;
    let store = world.open(2).await;
    processed(&world, &store, "old", 1).await;
    aged(&world, "old", 1, 31 * DAY).await;
    duplicate(&*store, &event("old/0")).await;
    assert_eq!(prune(&*store, 30 * DAY, 100).await, 1, "claims pruned");
    world.process(&store, &event("old/0"), "old").await;
    world.expect(&event("old/0"), 1, "old", 2).await;
    assert_eq!(
        prune(&*store, 30 * DAY, 100).await,
        0,
        "the new claim is young"
    );
    world.done().await;
}

pub(crate) async fn r14_session_time_zones_change_nothing<H: Harness>() {
    let world = World::<H>::new().await;
    let mut stores = Vec::new();
    for hours in [-12, 0, 13] {
        let mut options = StoreOptions::with_connections(1);
        options.time_zone = Some(hours);
        stores.push(world.open_with(&options).await);
    }
    for (number, store) in stores.iter().enumerate() {
        processed(&world, store, &format!("zone{number}"), 1).await;
    }
    for store in &stores {
        assert_eq!(
            prune(&**store, HOUR, 100).await,
            0,
            "claims of a moment ago pruned"
        );
    }
    for number in 0..stores.len() {
        aged(&world, &format!("zone{number}"), 1, 2 * HOUR).await;
    }
    assert_eq!(
        prune(&*stores[2], HOUR, 100).await,
        3,
        "claims two hours old pruned"
    );
    world.done().await;
}

/// On a machine whose clock is off, or behind a clock that was set: only one clock may count.
pub(crate) async fn r14_only_the_databases_clock_counts<H: Harness>() {
    let world = World::<H>::new().await;
    for hours in [-5, 5] {
        let mut options = StoreOptions::with_connections(1);
        options.clock = Some(hours);
        let store = world.open_with(&options).await;
        let account = format!("clock{hours}");
        processed(&world, &store, &account, 1).await;
        assert_eq!(
            prune(&*store, 2 * HOUR, 100).await,
            0,
            "claims of a moment ago pruned, with the database's clock off by {hours} h"
        );
        aged(&world, &account, 1, 3 * HOUR).await;
        assert_eq!(
            prune(&*store, 2 * HOUR, 100).await,
            1,
            "claims three hours old pruned, with the database's clock off by {hours} h"
        );
    }
    world.done().await;
}

pub(crate) async fn r14_extreme_ages_and_limits_are_valid<H: Harness>() {
    let world = World::<H>::new().await;
    let store = world.open(2).await;
    processed(&world, &store, "old", 3).await;
    aged(&world, "old", 3, DAY).await;
    for older_than in [Duration::MAX, Duration::from_secs(u64::MAX), 100_000 * DAY] {
        assert_eq!(
            prune(&*store, older_than, u32::MAX).await,
            0,
            "older than {older_than:?}"
        );
    }
    assert_eq!(
        prune(&*store, DAY / 2, u32::MAX).await,
        3,
        "claims pruned without a limit"
    );
    world.done().await;
}
