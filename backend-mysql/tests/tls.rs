//! TLS as the driver's options ask for it.
#![cfg(feature = "rustls")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test states what it expects"
)]

use std::env;
use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Opts, OptsBuilder, SslOpts};
use onceonly::{ClaimStore, Event, StoreError, StoreErrorKind};
use onceonly_mysql::{MySqlConfig, MySqlStore};

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| {
        panic!("{name} is not set: run `cargo xtask test`, which starts a server with TLS")
    })
}

fn store(host: &str, authority: &str) -> MySqlStore {
    let url = Opts::from_url(&variable("ONCEONLY_MYSQL_TLS_URL")).unwrap();
    let authority = PathBuf::from(variable(authority));
    let opts = OptsBuilder::from_opts(url)
        .ip_or_hostname(host)
        .prefer_socket(false)
        .ssl_opts(SslOpts::default().with_root_certs(vec![authority.into()]));
    MySqlConfig::new()
        .table("tls_events")
        .from_opts(opts)
        .unwrap()
}

fn chain(error: &StoreError) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        text = format!("{text}: {error}");
        next = error.source();
    }
    text
}

#[tokio::test]
async fn a_verified_server_is_used_over_tls() {
    let store = store("localhost", "ONCEONLY_MYSQL_TLS_CA");
    store.migrate().await.unwrap();
    let event = Event::new("tls", format!("{:016x}", rand::random::<u64>())).unwrap();
    let mut tx = store
        .claim(&event, Duration::from_secs(2))
        .await
        .unwrap()
        .fresh()
        .unwrap();
    let cipher: (String, String) = tx
        .query_first("SHOW SESSION STATUS LIKE 'Ssl_cipher'")
        .await
        .unwrap()
        .unwrap();
    assert!(!cipher.1.is_empty(), "the session is not encrypted");
    store.commit(tx).await.unwrap();
}

#[tokio::test]
async fn a_killed_session_is_reached_over_tls_too() {
    let store = store("localhost", "ONCEONLY_MYSQL_TLS_CA");
    store.migrate().await.unwrap();
    let event = Event::new("tls", format!("{:016x}", rand::random::<u64>())).unwrap();
    let wait = Duration::from_secs(5);
    let mut tx = store.claim(&event, wait).await.unwrap().fresh().unwrap();
    let slow = tx.query_drop("SELECT SLEEP(60)");
    assert!(
        tokio::time::timeout(Duration::from_millis(100), slow)
            .await
            .is_err()
    );
    drop(tx);
    assert!(store.claim(&event, wait).await.unwrap().fresh().is_some());
}

#[tokio::test]
async fn a_wrong_host_is_refused() {
    let error = store("127.0.0.1", "ONCEONLY_MYSQL_TLS_CA")
        .check()
        .await
        .unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    assert!(
        chain(&error).contains("not valid for name"),
        "{}",
        chain(&error)
    );
}

#[tokio::test]
async fn an_unknown_authority_is_refused() {
    let error = store("localhost", "ONCEONLY_MYSQL_TLS_OTHER_CA")
        .check()
        .await
        .unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    assert!(chain(&error).contains("UnknownIssuer"), "{}", chain(&error));
}
