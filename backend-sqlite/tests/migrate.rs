//! Bringing the schema up to date, or leaving a team's own alone.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test states what it expects"
)]

use std::time::Duration;

use onceonly::{ClaimStore, Event, StoreErrorKind};
use onceonly_migrations::SQLITE;
use onceonly_sqlite::rusqlite::Connection;
use onceonly_sqlite::{SqliteConfig, SqliteStore};
use tokio::task::JoinSet;

const PATIENT: Duration = Duration::from_secs(30);

fn tables(connection: &Connection) -> Vec<String> {
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name";
    let mut names = connection.prepare(sql).unwrap();
    let names = names.query_map((), |row| row.get(0)).unwrap();
    names.collect::<Result<_, _>>().unwrap()
}

async fn processes_once(store: &SqliteStore) {
    let event = Event::new("migrate", "1").unwrap();
    let tx = store.claim(&event, PATIENT).await.unwrap().fresh().unwrap();
    store.commit(tx).await.unwrap();
    assert!(store.claim(&event, PATIENT).await.unwrap().is_duplicate());
}

#[tokio::test]
async fn files_applied_by_another_tool_are_accepted_without_a_history() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("world.db");
    let outside = Connection::open(&path).unwrap();
    for migration in SQLITE {
        outside.execute_batch(migration.sql()).unwrap();
    }
    let store = SqliteStore::open(&path).await.unwrap();
    store.migrate().await.unwrap();
    store.check().await.unwrap();
    processes_once(&store).await;
    assert_eq!(tables(&outside), ["processed_events"]);
}

#[tokio::test]
async fn foreign_table_that_does_not_fit_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("world.db");
    let outside = Connection::open(&path).unwrap();
    outside
        .execute_batch("CREATE TABLE processed_events (id TEXT PRIMARY KEY)")
        .unwrap();
    let store = SqliteStore::open(&path).await.unwrap();
    let error = store.migrate().await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Schema, "{error:?}");
    assert!(error.to_string().contains("STRICT"), "{error}");
    assert_eq!(tables(&outside), ["processed_events"]);
}

#[tokio::test]
async fn tables_of_two_names_are_kept_apart() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("world.db");
    for name in ["claims \"a\"", "claims 'b'", "select", "Ω"] {
        let store = SqliteConfig::new(&path).table(name).open().await.unwrap();
        let error = store.check().await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Schema, "{error:?}");
        for _ in 0..2 {
            store.migrate().await.unwrap();
        }
        processes_once(&store).await;
    }
}

#[tokio::test]
async fn stores_of_one_process_that_create_the_file_at_once_all_migrate() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("world.db");
    let mut instances = JoinSet::new();
    for _ in 0..10 {
        let path = path.clone();
        instances.spawn(async move {
            let store = SqliteStore::open(path).await.unwrap();
            store.migrate().await.unwrap();
        });
    }
    instances.join_all().await;
    processes_once(&SqliteStore::open(&path).await.unwrap()).await;
}

#[tokio::test]
async fn dropped_migration_changes_nothing_and_the_next_one_succeeds() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("world.db");
    let store = SqliteStore::open(&path).await.unwrap();
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    for polls in 1..5 {
        let mut migrating = Box::pin(store.migrate());
        for _ in 0..polls {
            if migrating.as_mut().poll(&mut context).is_ready() {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(migrating);
    }
    store.migrate().await.unwrap();
    processes_once(&store).await;
}

#[tokio::test]
async fn table_that_is_gone_behind_its_history_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("world.db");
    let store = SqliteStore::open(&path).await.unwrap();
    store.migrate().await.unwrap();
    processes_once(&store).await;
    let outside = Connection::open(&path).unwrap();
    outside
        .execute_batch("DROP TABLE processed_events")
        .unwrap();
    let event = Event::new("migrate", "2").unwrap();
    for error in [
        store.claim(&event, PATIENT).await.unwrap_err(),
        store.migrate().await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), StoreErrorKind::Schema, "{error:?}");
        assert!(error.to_string().contains("missing"), "{error}");
    }
}
