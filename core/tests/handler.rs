//! What a handler adds to a store: its queue, its limits, its re-runs.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test states what it expects"
)]

use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use onceonly::{
    Claim, ClaimStore, Event, HandleError, Handler, MemoryStore, Outcome, StoreError,
    StoreErrorKind,
};
use tokio::task::{JoinSet, yield_now};

fn event() -> Event {
    Event::new("test", "evt_1").unwrap()
}

async fn handle(handler: &Handler<MemoryStore>) -> Result<Outcome<()>, HandleError<Infallible>> {
    handler.handle(&event(), async |_| Ok(())).await
}

/// Lets every task run until it waits; with a paused clock nothing else moves.
async fn settle() {
    for _ in 0..100 {
        yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_deliveries_hold_nothing_of_the_store() {
    let handler = Handler::new(MemoryStore::new());
    let leader = handler.begin(&event()).await.unwrap().fresh().unwrap();
    let mut storm = JoinSet::new();
    for _ in 0..1_000 {
        let handler = handler.clone();
        storm.spawn(async move { handle(&handler).await.unwrap().is_duplicate() });
    }
    settle().await;
    assert_eq!(handler.store().waiting(), 0);
    leader.commit().await.unwrap();
    assert!(
        storm
            .join_all()
            .await
            .into_iter()
            .all(|duplicate| duplicate)
    );
    assert_eq!(handler.in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_rolled_back_leader_lets_exactly_one_waiter_process() {
    let handler = Handler::new(MemoryStore::new());
    let leader = handler.begin(&event()).await.unwrap().fresh().unwrap();
    let mut waiters = JoinSet::new();
    for _ in 0..32 {
        let handler = handler.clone();
        waiters.spawn(async move { handle(&handler).await.unwrap().is_duplicate() });
    }
    settle().await;
    leader.rollback().await.unwrap();
    let duplicates = waiters.join_all().await;
    assert_eq!(
        duplicates.iter().filter(|duplicate| !**duplicate).count(),
        1
    );
}

#[tokio::test(start_paused = true)]
async fn the_queue_is_part_of_the_wait() {
    let handler = Handler::new(MemoryStore::new());
    let _leader = handler.begin(&event()).await.unwrap();
    for wait in [Duration::ZERO, Duration::from_secs(7)] {
        let started = tokio::time::Instant::now();
        let error = handler
            .clone()
            .with_wait(wait)
            .begin(&event())
            .await
            .unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::InFlight);
        assert_eq!(started.elapsed().as_secs(), wait.as_secs());
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_handled_inside_its_own_apply_is_in_flight() {
    let handler = Handler::new(MemoryStore::new());
    let inner = handler
        .handle(&event(), async |_| {
            Ok::<_, Infallible>(handle(&handler).await.unwrap_err())
        })
        .await
        .unwrap()
        .processed()
        .unwrap();
    assert_eq!(
        inner.as_store().map(StoreError::kind),
        Some(StoreErrorKind::InFlight)
    );
}

#[tokio::test(start_paused = true)]
async fn a_failed_apply_comes_back_unchanged_and_the_next_delivery_processes() {
    let handler = Handler::new(MemoryStore::new());
    let failed = handler
        .handle(&event(), async |tx| {
            tx.put("effect", "1");
            Err::<(), _>(io::Error::other("no such account"))
        })
        .await;
    assert!(matches!(failed, Err(HandleError::Apply(e)) if e.to_string() == "no such account"));
    assert_eq!(handler.store().get("effect"), None);
    assert_eq!(handle(&handler).await.unwrap(), Outcome::Processed(()));
}

#[tokio::test(start_paused = true)]
async fn an_apply_past_its_limit_is_rolled_back() {
    let handler = Handler::new(MemoryStore::new()).with_apply_limit(Duration::from_secs(3));
    let error = handler
        .handle(&event(), async |tx| {
            tx.put("effect", "1");
            pending::<Result<(), Infallible>>().await
        })
        .await
        .unwrap_err();
    assert_eq!(
        error.as_store().map(StoreError::kind),
        Some(StoreErrorKind::ApplyTimedOut)
    );
    assert_eq!(handler.store().get("effect"), None);
    assert_eq!(handle(&handler).await.unwrap(), Outcome::Processed(()));
}

#[tokio::test]
async fn the_queue_is_empty_again_after_panics_and_drops() {
    let handler = Handler::new(MemoryStore::new());
    let panicking = handler.clone();
    let panicked = tokio::spawn(async move {
        let apply = async |_: &mut onceonly::MemoryTx| -> Result<(), Infallible> { panic!("boom") };
        panicking.handle(&event(), apply).await
    });
    assert!(panicked.await.unwrap_err().is_panic());
    assert_eq!(handler.in_flight(), 0);

    let stuck = handler.clone();
    let dropped = tokio::spawn(async move {
        stuck
            .handle(&event(), async |_| {
                pending::<Result<(), Infallible>>().await
            })
            .await
    });
    let queued = handler.clone();
    let queued = tokio::spawn(async move { handle(&queued).await });
    while handler.in_flight() == 0 {
        yield_now().await;
    }
    queued.abort();
    dropped.abort();
    assert!(dropped.await.unwrap_err().is_cancelled());
    let _ = queued.await;
    assert_eq!(handler.in_flight(), 0);
    assert_eq!(handle(&handler).await.unwrap(), Outcome::Processed(()));
}

#[tokio::test(start_paused = true)]
async fn a_new_arrival_asks_the_store_after_the_queue_was_settled() {
    let handler = Handler::new(MemoryStore::new());
    assert_eq!(handle(&handler).await.unwrap(), Outcome::Processed(()));
    assert!(handle(&handler).await.unwrap().is_duplicate());
    handler.store().age(&event(), Duration::from_secs(60));
    assert_eq!(
        handler
            .store()
            .prune(Duration::from_secs(30), 10)
            .await
            .unwrap(),
        1
    );
    assert_eq!(handle(&handler).await.unwrap(), Outcome::Processed(()));
}

#[tokio::test(start_paused = true)]
async fn a_conflict_at_commit_is_run_again() {
    let handler = Handler::new(MemoryStore::new());
    let runs = AtomicU32::new(0);
    let apply = async |tx: &mut onceonly::MemoryTx| {
        tx.put("balance", "10");
        if runs.fetch_add(1, Ordering::Relaxed) == 0 {
            let other = Event::new("test", "other").unwrap();
            let write = async |tx: &mut onceonly::MemoryTx| {
                tx.put("balance", "7");
                Ok::<_, Infallible>(())
            };
            assert_eq!(
                handler.handle(&other, write).await.unwrap(),
                Outcome::Processed(())
            );
        }
        Ok::<_, Infallible>(())
    };
    let outcome = handler.handle_retrying(&event(), apply).await.unwrap();
    assert_eq!(outcome, Outcome::Processed(()));
    assert_eq!(runs.into_inner(), 2);
    assert_eq!(handler.store().get("balance"), Some(b"10".to_vec()));
}

#[tokio::test(start_paused = true)]
async fn a_conflict_that_stays_comes_back_after_the_last_rerun() {
    let handler = Handler::new(MemoryStore::new()).with_reruns(2);
    let runs = AtomicU32::new(0);
    let apply = async |_: &mut onceonly::MemoryTx| {
        runs.fetch_add(1, Ordering::Relaxed);
        Err::<(), _>(StoreError::new(StoreErrorKind::Conflict, "deadlock"))
    };
    let error = handler.handle_retrying(&event(), apply).await.unwrap_err();
    assert!(matches!(error, HandleError::Apply(e) if e.kind() == StoreErrorKind::Conflict));
    assert_eq!(runs.into_inner(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_guard_frees_the_key() {
    let handler = Handler::new(MemoryStore::new());
    let Claim::Fresh(guard) = handler.begin(&event()).await.unwrap() else {
        panic!("the key is free");
    };
    drop(guard);
    assert_eq!(handler.in_flight(), 0);
    assert_eq!(handle(&handler).await.unwrap(), Outcome::Processed(()));
}
