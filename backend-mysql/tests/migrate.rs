//! Migrations, the check, and the errors of a database that is not there.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test states what it expects"
)]

mod harness;

use std::time::Duration;

use harness::MySqlHarness;
use mysql_async::OptsBuilder;
use mysql_async::prelude::Queryable;
use onceonly::{ClaimStore, Event, StoreErrorKind};
use onceonly_conformance::{Harness, StoreOptions};
use onceonly_mysql::{MySqlConfig, MySqlStore};

const WAIT: Duration = Duration::from_secs(2);

async fn empty() -> (MySqlHarness, MySqlStore) {
    let world = MySqlHarness::setup_empty().await.unwrap();
    let store = world.store(&StoreOptions::default()).await.unwrap();
    (world, store)
}

async fn works(store: &MySqlStore) {
    let event = Event::new("migrate", "a").unwrap();
    let tx = store.claim(&event, WAIT).await.unwrap().fresh().unwrap();
    store.commit(tx).await.unwrap();
}

#[tokio::test]
async fn a_migration_interrupted_after_any_statement_is_taken_up_again() {
    for undone in [
        "DROP VIEW processed_events_text",
        "DROP TABLE processed_events",
    ] {
        let (world, store) = empty().await;
        store.migrate().await.unwrap();
        let mut conn = world.connect().await.unwrap();
        if undone.starts_with("DROP TABLE") {
            conn.query_drop("DROP VIEW processed_events_text")
                .await
                .unwrap();
        }
        conn.query_drop(undone).await.unwrap();
        conn.query_drop("UPDATE processed_events_migrations SET applied_at = NULL")
            .await
            .unwrap();
        store.migrate().await.unwrap();
        let finished: Option<u32> = conn
            .query_first(
                "SELECT COUNT(*) FROM processed_events_migrations WHERE applied_at IS NOT NULL",
            )
            .await
            .unwrap();
        assert_eq!(finished, Some(1));
        conn.query_drop("SELECT * FROM processed_events_text")
            .await
            .unwrap();
        works(&store).await;
        world.teardown().await.unwrap();
    }
}

#[tokio::test]
async fn a_table_made_from_the_files_by_another_tool_is_accepted() {
    let (world, store) = empty().await;
    let mut conn = world.connect().await.unwrap();
    conn.query_drop(onceonly_migrations::MYSQL[0].sql())
        .await
        .unwrap();
    store.migrate().await.unwrap();
    works(&store).await;
    world.teardown().await.unwrap();
}

#[tokio::test]
async fn an_unfit_table_of_another_tool_is_refused() {
    let (world, store) = empty().await;
    let mut conn = world.connect().await.unwrap();
    conn.query_drop("CREATE TABLE processed_events (event_id VARCHAR(255) PRIMARY KEY)")
        .await
        .unwrap();
    let error = store.migrate().await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Schema, "{error}");
    world.teardown().await.unwrap();
}

#[tokio::test]
async fn any_table_name_is_quoted() {
    let (world, _) = empty().await;
    for name in [
        "claims of team a",
        "order",
        "tick`ed; DROP TABLE ledger",
        "ключи",
    ] {
        let opts = world.opts(&StoreOptions::default());
        let store = MySqlConfig::new().table(name).from_opts(opts).unwrap();
        store.migrate().await.unwrap();
        store.migrate().await.unwrap();
        works(&store).await;
        assert_eq!(store.prune(Duration::ZERO, 10).await.unwrap(), 1, "{name}");
    }
    assert_eq!(world.effects("ledger still there").await.unwrap(), 0);
    world.teardown().await.unwrap();
}

#[tokio::test]
async fn names_that_can_not_be_are_refused() {
    let (world, _) = empty().await;
    for name in [
        String::new(),
        "a".repeat(53),
        "nul\0".into(),
        "space ".into(),
    ] {
        let opts = world.opts(&StoreOptions::default());
        let error = MySqlConfig::new().table(name).from_opts(opts).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unsupported, "{error}");
    }
    world.teardown().await.unwrap();
}

#[tokio::test]
async fn a_missing_table_names_the_fix() {
    let (world, store) = empty().await;
    let error = store
        .claim(&Event::new("migrate", "a").unwrap(), WAIT)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Schema);
    assert!(error.to_string().contains("run migrate()"), "{error}");
    store.migrate().await.unwrap();
    works(&store).await;
    // Also when it goes away after it was checked.
    let mut conn = world.connect().await.unwrap();
    conn.query_drop("DROP TABLE processed_events")
        .await
        .unwrap();
    let error = store
        .claim(&Event::new("migrate", "b").unwrap(), WAIT)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Schema);
    assert!(error.to_string().contains("run migrate()"), "{error}");
    world.teardown().await.unwrap();
}

#[tokio::test]
async fn an_unreachable_server_is_named_without_the_password() {
    // Port 9 is discard, which nobody serves any more.
    let error = MySqlStore::connect("mysql://app:secret@127.0.0.1:9/shop")
        .await
        .unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    assert!(error.to_string().contains("127.0.0.1:9"), "{error}");
    assert!(!format!("{error:?}").contains("secret"), "{error:?}");
}

#[tokio::test]
async fn an_invalid_url_is_told_without_the_password() {
    for url in [
        "postgres://app:secret@localhost/shop",
        "secret",
        "mysql://app:secret@localhost/shop?pool_max=secret",
    ] {
        let error = MySqlStore::connect(url).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unsupported, "{error}");
        assert!(error.to_string().contains("invalid URL"), "{error}");
    }
}

#[tokio::test]
async fn a_missing_database_and_no_database_name_the_fix() {
    let (world, _) = empty().await;
    let opts = world.opts(&StoreOptions::default());
    let gone = OptsBuilder::from_opts(opts.clone()).db_name(Some("no_such_database"));
    let error = MySqlConfig::new()
        .from_opts(gone)
        .unwrap()
        .check()
        .await
        .unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Schema, "{error}");
    assert!(error.to_string().contains("create the database"), "{error}");

    let none = OptsBuilder::from_opts(opts).db_name(None::<String>);
    let store = MySqlConfig::new().from_opts(none).unwrap();
    for error in [
        store.check().await.unwrap_err(),
        store.migrate().await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), StoreErrorKind::Schema, "{error}");
        assert!(error.to_string().contains("name it in the URL"), "{error}");
    }
    world.teardown().await.unwrap();
}

#[tokio::test]
async fn a_busy_pool_is_unavailable_in_time() {
    let (world, _) = empty().await;
    let options = StoreOptions::with_connections(1);
    let opts = world.opts(&options);
    let store = MySqlConfig::new()
        .max_connections(1)
        .acquire_timeout(Duration::from_millis(100))
        .from_opts(opts)
        .unwrap();
    store.migrate().await.unwrap();
    let held = store
        .claim(&Event::new("migrate", "a").unwrap(), WAIT)
        .await
        .unwrap();
    let started = std::time::Instant::now();
    let error = store
        .claim(&Event::new("migrate", "b").unwrap(), WAIT)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
    assert!(started.elapsed() < Duration::from_millis(500));
    drop(held);
    world.teardown().await.unwrap();
}
