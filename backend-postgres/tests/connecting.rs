//! Bad input and unreachable databases: clear errors without the password.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test states what it expects"
)]

mod harness;

use std::error::Error;
use std::time::Duration;

use harness::PostgresHarness;
use onceonly::{Claim, ClaimStore, Event, StoreErrorKind};
use onceonly_conformance::Harness;
use onceonly_postgres::deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod};
use onceonly_postgres::tokio_postgres::NoTls;
use onceonly_postgres::{PostgresConfig, PostgresStore};

const PATIENT: Duration = Duration::from_secs(30);

async fn refused(config: PostgresConfig, url: &str, kind: StoreErrorKind, fault: &str) {
    let error = match config.connect(url).await {
        Ok(_) => panic!("connected to {url}"),
        Err(error) => error,
    };
    let mut text = format!("{error} / {error:?}");
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(&format!(" / {error} / {error:?}"));
        source = error.source();
    }
    assert_eq!(error.kind(), kind, "{text}");
    assert!(error.to_string().contains(fault), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
}

#[tokio::test]
async fn errors_name_the_fault_and_hide_the_password() {
    let own = PostgresConfig::new;
    let unavailable = StoreErrorKind::Unavailable;
    let unsupported = StoreErrorKind::Unsupported;
    let nobody = "postgres://u:hunter2@127.0.0.1:1/d";
    refused(own(), nobody, unavailable, "does the server run").await;
    let nowhere = "postgres://u:hunter2@no.such.host.invalid/d";
    refused(own(), nowhere, unavailable, "host").await;
    refused(own(), "postgres://u:hunter2@h/d?no=1", unsupported, "`no`").await;
    refused(own(), "", unsupported, "no host").await;
    refused(own().table(""), nobody, unsupported, "table is empty").await;
    refused(own().table("x".repeat(52)), nobody, unsupported, "51 bytes").await;
    refused(own().schema("a\0b"), nobody, unsupported, "NUL").await;

    let world = PostgresHarness::setup().await.unwrap();
    let url = world.url(&Default::default()).unwrap();
    let url = url.replacen("//postgres@", "//postgres:hunter2@", 1);
    let name = world.config().get_dbname().unwrap();
    let none = url.replacen(name, "no_such_database", 1);
    refused(own(), &none, unavailable, "check the database").await;
    let nobody = url.replacen("//postgres:", "//no_such_role:", 1);
    refused(own(), &nobody, unavailable, "no_such_role").await;

    let store = PostgresStore::connect(&url).await.unwrap();
    assert!(!format!("{store:?}").contains("hunter2"));
    drop(store);
    world.teardown().await.unwrap();
}

#[tokio::test]
async fn server_that_never_answers_is_unavailable_in_time() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("postgres://u@{}/d", silent.local_addr().unwrap());
    let limit = Duration::from_millis(300);
    let started = std::time::Instant::now();
    let config = PostgresConfig::new().acquire_timeout(limit);
    refused(config, &url, StoreErrorKind::Unavailable, "300ms").await;
    assert!(started.elapsed() < 5 * limit);
}

#[tokio::test]
async fn pool_without_a_free_connection_is_unavailable_in_time() {
    let world = PostgresHarness::setup().await.unwrap();
    let limit = Duration::from_millis(200);
    let config = PostgresConfig::new()
        .max_connections(1)
        .acquire_timeout(limit);
    let store = world.open(config).await.unwrap();
    let event = Event::new("connecting", "e").unwrap();
    let held = store.claim(&event, PATIENT).await.unwrap();
    let started = std::time::Instant::now();
    let error = store.claim(&event, Duration::MAX).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    assert!(error.to_string().contains("pool"), "{error}");
    assert!(started.elapsed() < 5 * limit);
    drop(held);
    world.teardown().await.unwrap();
}

/// Whatever the pool does on recycling, it shares its connections with the claims.
#[tokio::test]
async fn pool_of_the_team_works_with_every_recycling_method() {
    for recycling_method in [
        RecyclingMethod::Fast,
        RecyclingMethod::Verified,
        RecyclingMethod::Clean,
        RecyclingMethod::Custom("SELECT 1".into()),
    ] {
        let world = PostgresHarness::setup().await.unwrap();
        let config = ManagerConfig { recycling_method };
        let manager = Manager::from_config(world.config().clone(), NoTls, config);
        let pool = Pool::builder(manager).max_size(1).build().unwrap();
        let store = PostgresStore::from_pool(pool.clone()).unwrap();
        for n in 0..10 {
            let event = Event::new("connecting", n.to_string()).unwrap();
            let Claim::Fresh(mut tx) = store.claim(&event, PATIENT).await.unwrap() else {
                panic!("{event:?} is free");
            };
            world.effect(&mut tx, "acme").await.unwrap();
            match n % 2 {
                0 => store.commit(tx).await.unwrap(),
                _ => drop(tx),
            }
            let claim = store.claim(&event, PATIENT).await.unwrap();
            assert_eq!(claim.is_duplicate(), n % 2 == 0);
            drop(claim);
            pool.get()
                .await
                .unwrap()
                .batch_execute("SELECT 1")
                .await
                .unwrap();
        }
        assert_eq!(world.effects("acme").await.unwrap(), 5);
        world.teardown().await.unwrap();
    }
}

#[tokio::test]
async fn wait_of_a_claim_ends_on_a_pool_of_the_team_too() {
    let world = PostgresHarness::setup().await.unwrap();
    let server = world.config().clone();
    for config in [
        PostgresConfig::new(),
        PostgresConfig::new().server(server.clone()),
    ] {
        let manager = Manager::new(server.clone(), NoTls);
        let pool = Pool::builder(manager).max_size(2).build().unwrap();
        let store = config.from_pool(pool).unwrap();
        let event = Event::new("connecting", "e").unwrap();
        let first = store.claim(&event, PATIENT).await.unwrap();
        let wait = Duration::from_millis(300);
        let error = store.claim(&event, wait).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::InFlight);
        assert_eq!(world.waiting().await.unwrap(), 0);
        store.rollback(first.fresh().unwrap()).await.unwrap();
    }
    world.teardown().await.unwrap();
}

/// The pool still believes in connections that the server has closed: the claim takes another.
#[tokio::test]
async fn connection_that_the_server_closed_is_replaced() {
    let world = PostgresHarness::setup().await.unwrap();
    let store = world.open(PostgresConfig::new()).await.unwrap();
    let outside = world.connect().await.unwrap();
    for n in 0..20 {
        let event = Event::new("connecting", n.to_string()).unwrap();
        let tx = store.claim(&event, PATIENT).await.unwrap().fresh().unwrap();
        store.commit(tx).await.unwrap();
        outside
            .batch_execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                 WHERE datname = current_database() AND application_name = 'onceonly'",
            )
            .await
            .unwrap();
    }
    world.teardown().await.unwrap();
}
