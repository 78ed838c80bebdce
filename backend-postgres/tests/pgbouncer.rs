//! Behind PgBouncer in transaction mode, where clients share server connections.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test states what it expects"
)]

mod harness;

use std::env;
use std::process::Stdio;
use std::time::Duration;

use harness::PostgresHarness;
use onceonly::{Claim, ClaimRecords, ClaimStore, Event, Handler, StoreErrorKind};
use onceonly_conformance::Harness;
use onceonly_postgres::tokio_postgres::types::Type;
use onceonly_postgres::{PostgresConfig, PostgresStore, PostgresTx};
use tokio::process::Command;

const PATIENT: Duration = Duration::from_secs(30);
const EVENTS: u32 = 150;

/// The world's database, as PgBouncer offers it.
fn url(world: &PostgresHarness) -> String {
    let url = env::var("ONCEONLY_PGBOUNCER_URL").unwrap_or_else(|_| {
        panic!("ONCEONLY_PGBOUNCER_URL is not set: run `cargo xtask test`, which starts one")
    });
    let (server, _database) = url.rsplit_once('/').unwrap();
    format!("{server}/{}", world.config().get_dbname().unwrap())
}

async fn open(url: &str) -> PostgresStore {
    PostgresConfig::new()
        .max_connections(8)
        .connect(url)
        .await
        .unwrap()
}

async fn fresh(store: &PostgresStore, event: &Event) -> PostgresTx {
    store.claim(event, PATIENT).await.unwrap().fresh().unwrap()
}

/// Two processes of one text each would, with named statements, both call it `s0`.
#[tokio::test]
async fn two_processes_process_each_event_once_and_run_no_foreign_statement() {
    let world = PostgresHarness::setup().await.unwrap();
    let outside = world.connect().await.unwrap();
    for writer in ["a", "b"] {
        let create = format!("CREATE TABLE of_{writer} (writer text, event text)");
        outside.batch_execute(&create).await.unwrap();
    }
    let children: Vec<_> = ["a", "b"]
        .map(|writer| {
            Command::new(env::current_exe().unwrap())
                .args(["--exact", "process_of_its_own", "--ignored", "--nocapture"])
                .env("ONCEONLY_TEST_WRITER", writer)
                .env("ONCEONLY_TEST_URL", url(&world))
                .stdout(Stdio::null())
                .kill_on_drop(true)
                .spawn()
                .unwrap()
        })
        .into();
    for mut child in children {
        assert!(child.wait().await.unwrap().success());
    }
    let count = async |sql: &str| -> i64 { outside.query_one(sql, &[]).await.unwrap().get(0) };
    let both = "(SELECT * FROM of_a UNION ALL SELECT * FROM of_b)";
    assert_eq!(
        count(&format!("SELECT count(*) FROM {both} x")).await,
        i64::from(EVENTS)
    );
    let events = format!("SELECT count(DISTINCT event) FROM {both} x");
    assert_eq!(count(&events).await, i64::from(EVENTS));
    for writer in ["a", "b"] {
        let foreign = format!("SELECT count(*) FROM of_{writer} WHERE writer <> '{writer}'");
        assert_eq!(count(&foreign).await, 0);
    }
    // One of the server connections that both processes used.
    let shared = open(&url(&world)).await.pool().get().await.unwrap();
    let ask = "SELECT count(*) FROM pg_prepared_statements";
    let named: i64 = shared.query_typed_one(ask, &[]).await.unwrap().get(0);
    assert_eq!(named, 0);
    drop(shared);
    world.teardown().await.unwrap();
}

#[tokio::test]
#[ignore = "started as a process of its own by another test"]
async fn process_of_its_own() {
    let writer = env::var("ONCEONLY_TEST_WRITER").unwrap();
    let handler = Handler::new(open(&env::var("ONCEONLY_TEST_URL").unwrap()).await);
    let insert = format!("INSERT INTO of_{writer} VALUES ($1, $2)");
    let deliveries: Vec<_> = (0..8)
        .map(|_| {
            let (handler, writer, insert) = (handler.clone(), writer.clone(), insert.clone());
            tokio::spawn(async move {
                for n in 0..EVENTS {
                    let id = n.to_string();
                    let event = Event::new("pgbouncer", id.as_str()).unwrap();
                    let parameters = [(&writer as _, Type::TEXT), (&id as _, Type::TEXT)];
                    handler
                        .handle(&event, async |tx| {
                            tx.execute_typed(&insert, &parameters).await
                        })
                        .await
                        .unwrap();
                }
            })
        })
        .collect();
    for delivery in deliveries {
        delivery.await.unwrap();
    }
}

#[tokio::test]
async fn claim_that_waits_is_cancelled_through_it() {
    let world = PostgresHarness::setup().await.unwrap();
    let store = open(&url(&world)).await;
    let event = Event::new("pgbouncer", "e").unwrap();
    let first = fresh(&store, &event).await;
    let wait = Duration::from_millis(300);
    let error = store.claim(&event, wait).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::InFlight);
    assert_eq!(
        world.waiting().await.unwrap(),
        0,
        "the key is still queued for"
    );

    let racer = store.clone();
    let again = event.clone();
    let waiting = tokio::spawn(async move { racer.claim(&again, PATIENT).await.map(drop) });
    while world.waiting().await.unwrap() == 0 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    waiting.abort();
    while world.waiting().await.unwrap() > 0 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    store.commit(first).await.unwrap();
    assert!(store.claim(&event, PATIENT).await.unwrap().is_duplicate());
    world.teardown().await.unwrap();
}

#[tokio::test]
async fn everything_else_works_through_it() {
    let world = PostgresHarness::setup_empty().await.unwrap();
    let store = open(&url(&world)).await;
    store.migrate().await.unwrap();
    let event = Event::new("pgbouncer", "e").unwrap();

    let mut tx = fresh(&store, &event).await;
    let savepoint = tx.savepoint().await.unwrap();
    savepoint
        .batch_execute("INSERT INTO ledger (account) VALUES ('undone')")
        .await
        .unwrap();
    savepoint.rollback().await.unwrap();
    tx.batch_execute("INSERT INTO ledger (account) VALUES ('done')")
        .await
        .unwrap();
    store.commit(tx).await.unwrap();
    assert_eq!(world.effects("done").await.unwrap(), 1);
    assert_eq!(world.effects("undone").await.unwrap(), 0);

    let escaping = Event::new("pgbouncer", "escaping").unwrap();
    let tx = fresh(&store, &escaping).await;
    tx.batch_execute("COMMIT").await.unwrap();
    let error = store.commit(tx).await.unwrap_err();
    assert!(matches!(
        error.kind(),
        StoreErrorKind::TransactionEnded {
            claim: onceonly::ClaimFate::Durable
        }
    ));
    assert!(store.is_claimed(event.source(), event.id()).await.unwrap());
    assert!(matches!(
        store.claim(&event, PATIENT).await.unwrap(),
        Claim::Duplicate(_)
    ));
    assert_eq!(store.prune(Duration::ZERO, 1).await.unwrap(), 1);
    assert_eq!(store.prune(Duration::ZERO, 10).await.unwrap(), 1);
    drop(fresh(&store, &event).await);
    world.teardown().await.unwrap();
}
