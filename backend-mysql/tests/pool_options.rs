//! A pool of the team's own, with the options that make claiming harder.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test states what it expects"
)]

mod harness;

use std::time::Duration;

use harness::MySqlHarness;
use mysql_async::prelude::Queryable;
use mysql_async::{Pool, PoolConstraints, PoolOpts};
use onceonly::{Claim, ClaimStore, Event, StoreErrorKind};
use onceonly_conformance::{Harness, StoreOptions};
use onceonly_mysql::{MySqlConfig, MySqlStore};

const WAIT: Duration = Duration::from_secs(2);

/// One connection, CLIENT_FOUND_ROWS, and no reset when it comes back.
async fn world() -> (MySqlHarness, Pool, MySqlStore) {
    let world = MySqlHarness::setup().await.unwrap();
    let opts = world
        .opts(&StoreOptions::default())
        .client_found_rows(true)
        .pool_opts(
            PoolOpts::new()
                .with_constraints(PoolConstraints::new(0, 1).unwrap())
                .with_reset_connection(false),
        );
    let pool = Pool::new(opts);
    let store = MySqlStore::from_pool(pool.clone());
    (world, pool, store)
}

fn event(id: &str) -> Event {
    Event::new("pool", id).unwrap()
}

/// What a borrower finds: a transaction open or not, and the session's lock wait.
async fn borrowed(pool: &Pool) -> (bool, u64) {
    let mut conn = pool.get_conn().await.unwrap();
    // Outside of a transaction this is allowed, inside it is error 1568.
    let clean = conn
        .query_drop("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
        .await
        .is_ok();
    let wait = conn
        .query_first("SELECT @@SESSION.innodb_lock_wait_timeout")
        .await
        .unwrap()
        .unwrap();
    (clean, wait)
}

#[tokio::test]
async fn found_rows_do_not_make_a_duplicate_fresh() {
    let (world, _pool, store) = world().await;
    let tx = store
        .claim(&event("a"), WAIT)
        .await
        .unwrap()
        .fresh()
        .unwrap();
    store.commit(tx).await.unwrap();
    for _ in 0..3 {
        assert!(store.claim(&event("a"), WAIT).await.unwrap().is_duplicate());
    }
    world.teardown().await.unwrap();
}

#[tokio::test]
async fn unreset_connections_come_back_outside_of_a_transaction() {
    let (world, pool, store) = world().await;
    let outside = borrowed(&pool).await;
    assert!(outside.0);

    let tx = store
        .claim(&event("dropped"), WAIT)
        .await
        .unwrap()
        .fresh()
        .unwrap();
    drop(tx);
    assert_eq!(
        borrowed(&pool).await,
        outside,
        "after a dropped transaction"
    );

    let tx = store
        .claim(&event("back"), WAIT)
        .await
        .unwrap()
        .fresh()
        .unwrap();
    store.rollback(tx).await.unwrap();
    assert_eq!(borrowed(&pool).await, outside, "after a rollback");

    let tx = store
        .claim(&event("done"), WAIT)
        .await
        .unwrap()
        .fresh()
        .unwrap();
    store.commit(tx).await.unwrap();
    assert_eq!(borrowed(&pool).await, outside, "after a commit");

    assert!(
        store
            .claim(&event("done"), WAIT)
            .await
            .unwrap()
            .is_duplicate()
    );
    assert_eq!(borrowed(&pool).await, outside, "after a duplicate");
    assert_eq!(world.claims(&event("dropped")).await.unwrap(), 0);
    world.teardown().await.unwrap();
}

#[tokio::test]
async fn apply_sees_the_sessions_own_lock_wait() {
    let (world, pool, store) = world().await;
    let (_, own) = borrowed(&pool).await;
    let mut tx = store
        .claim(&event("a"), WAIT)
        .await
        .unwrap()
        .fresh()
        .unwrap();
    let seen: u64 = tx
        .query_first("SELECT @@SESSION.innodb_lock_wait_timeout")
        .await
        .unwrap()
        .unwrap();
    assert_eq!(seen, own);
    drop(tx);
    world.teardown().await.unwrap();
}

#[tokio::test]
async fn a_timed_out_claim_gives_back_a_usable_connection() {
    let (world, pool, store) = world().await;
    let outside = borrowed(&pool).await;
    let holder = world.store(&StoreOptions::default()).await.unwrap();
    let held = holder
        .claim(&event("a"), WAIT)
        .await
        .unwrap()
        .fresh()
        .unwrap();
    for wait in [
        Duration::ZERO,
        Duration::from_millis(300),
        Duration::from_secs(1),
    ] {
        let error = store.claim(&event("a"), wait).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::InFlight, "{error}");
        assert_eq!(borrowed(&pool).await, outside, "after a wait of {wait:?}");
    }
    holder.rollback(held).await.unwrap();
    assert!(
        store
            .claim(&event("a"), WAIT)
            .await
            .unwrap()
            .fresh()
            .is_some()
    );
    world.teardown().await.unwrap();
}

#[tokio::test]
async fn a_transaction_that_the_team_left_in_the_pool_is_not_ours() {
    let (world, pool, store) = world().await;
    let mut theirs = pool.get_conn().await.unwrap();
    theirs.query_drop("BEGIN").await.unwrap();
    theirs
        .query_drop("INSERT INTO ledger (account) VALUES ('theirs')")
        .await
        .unwrap();
    drop(theirs);
    let tx = store
        .claim(&event("a"), WAIT)
        .await
        .unwrap()
        .fresh()
        .unwrap();
    store.commit(tx).await.unwrap();
    assert_eq!(world.effects("theirs").await.unwrap(), 0);
    assert_eq!(world.claims(&event("a")).await.unwrap(), 1);
    world.teardown().await.unwrap();
}

/// Leaves a reply unread, and that reply is another statement's duplicate entry.
async fn leave_a_refusal_unread(pool: &Pool) {
    let mut theirs = pool.get_conn().await.unwrap();
    // Its reply stays unread, and the next statement is given it instead of its own.
    let abandoned = theirs.query_drop("SELECT SLEEP(0.2)");
    assert!(
        tokio::time::timeout(Duration::from_millis(50), abandoned)
            .await
            .is_err()
    );
    theirs
        .query_drop("INSERT INTO counters VALUES (1, 0)")
        .await
        .unwrap();
}

async fn claims_as_if_nothing_was(world: &MySqlHarness, store: &MySqlStore) {
    match store.claim(&event("a"), WAIT).await.unwrap() {
        Claim::Fresh(tx) => store.commit(tx).await.unwrap(),
        Claim::Duplicate(_) => panic!("nobody claimed it"),
    }
    assert_eq!(world.claims(&event("a")).await.unwrap(), 1);
}

#[tokio::test]
async fn a_connection_with_an_unread_reply_in_the_pool_is_noticed() {
    let (world, pool, store) = world().await;
    leave_a_refusal_unread(&pool).await;
    claims_as_if_nothing_was(&world, &store).await;
    world.teardown().await.unwrap();
}

/// Also after the store's own claims have used the connection, and in a pool that the store made.
#[tokio::test]
async fn an_unread_reply_in_the_stores_own_pool_is_noticed() {
    let world = MySqlHarness::setup().await.unwrap();
    let opts = world
        .opts(&StoreOptions::default())
        .pool_opts(PoolOpts::new().with_reset_connection(false));
    let store = MySqlConfig::new()
        .max_connections(1)
        .from_opts(opts)
        .unwrap();
    for id in ["b", "c"] {
        let tx = store.claim(&event(id), WAIT).await.unwrap();
        store.commit(tx.fresh().unwrap()).await.unwrap();
    }
    leave_a_refusal_unread(store.pool()).await;
    claims_as_if_nothing_was(&world, &store).await;
    world.teardown().await.unwrap();
}
