//! R15: what was `Processed` outlives a kill, and settings that would lose it are found.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use onceonly::{Claim, ClaimStore, StoreErrorKind};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::Harness;
use crate::world::{PATIENT, World, claimed, duplicate, event, kind, must};

pub(crate) async fn r15_processed_events_outlive_a_kill<H: Harness>() {
    let world = World::<H>::of(H::setup_restartable().await);
    let store = world.open(4).await;
    for id in 0..20 {
        world
            .process(&store, &event(&format!("r15/{id}")), "acme")
            .await;
    }
    let mut open = claimed(&*store, &event("open")).await;
    world.credit(&mut open, "open").await;
    must(world.restart().await, "killing and restarting");
    for id in 0..20 {
        world
            .expect(&event(&format!("r15/{id}")), 1, "acme", 20)
            .await;
    }
    world.expect(&event("open"), 0, "open", 0).await;
    let answer = store.commit(open).await;
    assert!(
        answer.is_err(),
        "the commit of a transaction that was killed succeeded"
    );
    // A pool may hand out dead connections at first; each try must end, and soon one works.
    let mut tries = 0;
    let tx = loop {
        match store.claim(&event("open"), PATIENT).await {
            Ok(Claim::Fresh(tx)) => break tx,
            Ok(Claim::Duplicate(_)) => panic!("an open claim outlived the kill"),
            Err(error) if error.is_retryable() && tries < 20 => {
                tries += 1;
                sleep(Duration::from_millis(100)).await;
            }
            Err(error) => panic!("claiming after the restart: {error:?}"),
        }
    };
    must(store.commit(tx).await, "committing after the restart");
    duplicate(&*store, &event("r15/0")).await;
    world.done().await;
}

pub(crate) async fn r15_every_unfit_setting_is_found<H: Harness>() {
    for spoil in H::spoils() {
        let world = World::<H>::new().await;
        must(world.spoil(spoil).await, spoil);
        let store = world.open(1).await;
        let answer = kind(store.claim(&event("r15"), PATIENT).await, spoil);
        assert_eq!(
            answer,
            StoreErrorKind::Schema,
            "the first claim where {spoil}"
        );
        if H::capabilities().migrations {
            let answer = kind(world.migrate(&*store).await, spoil);
            assert_eq!(answer, StoreErrorKind::Schema, "migrating where {spoil}");
        }
        world.done().await;
    }
}

pub(crate) async fn r15_kill_between_commits_splits_no_event<H: Harness>() {
    let world = World::<H>::of(H::setup_restartable().await);
    let store = world.open(8).await;
    let processed = Arc::new(Mutex::new(Vec::new()));
    let mut workers = JoinSet::new();
    for worker in 0..8 {
        let (world, store, processed) = (world.clone(), Arc::clone(&store), Arc::clone(&processed));
        workers.spawn(async move {
            for turn in 0.. {
                let id = format!("{worker}/{turn}");
                let Ok(Claim::Fresh(mut tx)) = store.claim(&event(&id), PATIENT).await else {
                    return;
                };
                if world.effect(&mut tx, &id).await.is_err() || store.commit(tx).await.is_err() {
                    return;
                }
                lock(&processed).push(id);
            }
        });
    }
    while lock(&processed).len() < 100 {
        sleep(Duration::from_millis(1)).await;
    }
    must(world.restart().await, "killing and restarting");
    workers.abort_all();
    while workers.join_next().await.is_some() {}
    let processed = lock(&processed).clone();
    for id in &processed {
        world.expect(&event(id), 1, id, 1).await;
    }
    for worker in 0..8 {
        let prefix = format!("{worker}/");
        let done = processed
            .iter()
            .filter(|id| id.starts_with(&prefix))
            .count();
        let last = format!("{worker}/{done}");
        let (claims, effects) = world.committed(&event(&last), &last).await;
        assert_eq!(
            claims, effects,
            "claims and effects of an event that was never answered"
        );
    }
    world.done().await;
}

fn lock(ids: &Mutex<Vec<String>>) -> MutexGuard<'_, Vec<String>> {
    ids.lock().unwrap_or_else(PoisonError::into_inner)
}
