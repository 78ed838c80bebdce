//! The schema, by migrate() or by a team's own tool.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test states what it expects"
)]

mod harness;

use std::time::Duration;

use harness::PostgresHarness;
use onceonly::{ClaimRecords, ClaimStore, Event, Forget, StoreErrorKind};
use onceonly_conformance::Harness;
use onceonly_migrations::POSTGRES;
use onceonly_postgres::{PostgresConfig, PostgresStore, UnsafeSetting};

const PATIENT: Duration = Duration::from_secs(30);

async fn process(store: &PostgresStore, id: &str) {
    let event = Event::new("migrations", id).unwrap();
    let tx = store.claim(&event, PATIENT).await.unwrap();
    store.commit(tx.fresh().unwrap()).await.unwrap();
    assert!(store.claim(&event, PATIENT).await.unwrap().is_duplicate());
}

#[tokio::test]
async fn names_are_quoted() {
    let world = PostgresHarness::setup_empty().await.unwrap();
    let config = PostgresConfig::new()
        .schema("Bil\"ling; --")
        .table("claims of \"Team A\"");
    let store = world.open(config).await.unwrap();
    store.migrate().await.unwrap();
    store.migrate().await.unwrap();
    process(&store, "e").await;
    assert_eq!(store.prune(Duration::ZERO, 10).await.unwrap(), 1);
    world.teardown().await.unwrap();
}

#[tokio::test]
async fn two_tables_of_one_database_are_two_sets_of_claims() {
    let world = PostgresHarness::setup_empty().await.unwrap();
    for table in ["a", "b"] {
        let store = world
            .open(PostgresConfig::new().table(table))
            .await
            .unwrap();
        store.migrate().await.unwrap();
        process(&store, "e").await;
    }
    world.teardown().await.unwrap();
}

#[tokio::test]
async fn files_applied_by_another_tool_are_accepted() {
    let world = PostgresHarness::setup_empty().await.unwrap();
    let outside = world.connect().await.unwrap();
    for migration in POSTGRES {
        outside.batch_execute(migration.sql()).await.unwrap();
    }
    let store = world.open(PostgresConfig::new()).await.unwrap();
    process(&store, "before").await;
    store.migrate().await.unwrap();
    process(&store, "after").await;
    world.teardown().await.unwrap();
}

#[tokio::test]
async fn table_of_another_shape_is_refused_by_migrate() {
    let world = PostgresHarness::setup_empty().await.unwrap();
    let outside = world.connect().await.unwrap();
    let own = "CREATE TABLE processed_events (id text PRIMARY KEY)";
    outside.batch_execute(own).await.unwrap();
    let store = world.open(PostgresConfig::new()).await.unwrap();
    let error = store.migrate().await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Schema);
    assert!(error.to_string().contains("migrations/postgres"), "{error}");
    world.teardown().await.unwrap();
}

#[tokio::test]
async fn role_without_the_right_to_create_may_migrate_what_is_migrated() {
    let world = PostgresHarness::setup_empty().await.unwrap();
    let config = || PostgresConfig::new().schema("claims");
    let owner = world.open(config()).await.unwrap();
    owner.migrate().await.unwrap();
    let outside = world.connect().await.unwrap();
    let role = format!("role_{:016x}", rand::random::<u64>());
    outside
        .batch_execute(&format!(
            "CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA claims TO {role};
             GRANT SELECT, INSERT, UPDATE, DELETE ON claims.processed_events TO {role};
             GRANT SELECT ON claims.processed_events_migrations TO {role}"
        ))
        .await
        .unwrap();
    let url = world.url(&Default::default()).unwrap();
    let user = world.config().get_user().unwrap();
    let url = url.replacen(&format!("//{user}"), &format!("//{role}"), 1);
    let store = config().connect(&url).await.unwrap();
    store.migrate().await.unwrap();
    process(&store, "e").await;

    let event = Event::new("migrations", "e").unwrap();
    let (source, id) = (event.source(), event.id());
    assert!(store.is_claimed(source, id).await.unwrap());
    let forgotten = store.forget(source, id, PATIENT).await.unwrap();
    assert_eq!(forgotten, Forget::Forgotten);
    let forgotten = store.forget(source, id, PATIENT).await.unwrap();
    assert_eq!(forgotten, Forget::NotClaimed);
    assert!(!store.is_claimed(source, id).await.unwrap());

    outside
        .batch_execute(&format!(
            "REVOKE INSERT ON claims.processed_events FROM {role}"
        ))
        .await
        .unwrap();
    let error = store.claim(&event, PATIENT).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Schema);
    assert!(error.to_string().contains("GRANT"), "{error}");
    drop((owner, store));
    outside
        .batch_execute(&format!("DROP OWNED BY {role}; DROP ROLE {role}"))
        .await
        .unwrap();
    world.teardown().await.unwrap();
}

#[tokio::test]
async fn unsafe_setting_is_accepted_by_name_only() {
    let world = PostgresHarness::setup().await.unwrap();
    let name = world.config().get_dbname().unwrap();
    let outside = world.connect().await.unwrap();
    outside
        .batch_execute(&format!(
            "ALTER DATABASE {name} SET synchronous_commit = off;
             ALTER TABLE processed_events SET UNLOGGED"
        ))
        .await
        .unwrap();
    let mut config = PostgresConfig::new();
    for (setting, named) in [
        (UnsafeSetting::SynchronousCommitOff, "synchronous_commit"),
        (UnsafeSetting::UnloggedTable, "UNLOGGED"),
    ] {
        let store = world.open(config.clone()).await.unwrap();
        let error = store.check().await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Schema);
        let text = error.to_string();
        assert!(
            text.contains(named) && text.contains(&format!("{setting:?}")),
            "{text}"
        );
        config = config.allow_unsafe(setting);
    }
    process(&world.open(config).await.unwrap(), "e").await;
    world.teardown().await.unwrap();
}

#[tokio::test]
async fn missing_table_names_the_fix() {
    let world = PostgresHarness::setup_empty().await.unwrap();
    let event = Event::new("migrations", "e").unwrap();
    for config in [PostgresConfig::new(), PostgresConfig::new().schema("none")] {
        let store = world.open(config).await.unwrap();
        let error = store.claim(&event, PATIENT).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Schema);
        assert!(error.to_string().contains("run migrate()"), "{error}");
    }
    let store = world.open(PostgresConfig::new()).await.unwrap();
    store.migrate().await.unwrap();
    process(&store, "before").await;
    let outside = world.connect().await.unwrap();
    outside
        .batch_execute("DROP TABLE processed_events")
        .await
        .unwrap();
    let error = store.claim(&event, PATIENT).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Schema);
    assert!(error.to_string().contains("run migrate()"), "{error}");
    world.teardown().await.unwrap();
}
