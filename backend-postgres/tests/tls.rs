//! TLS as libpq does it: who is let in, who is refused, and that cancelling works over it.

#![cfg(feature = "rustls")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test states what it expects"
)]

use std::env;
use std::time::Duration;

use onceonly::{ClaimStore, Event, StoreErrorKind};
use onceonly_postgres::{PostgresConfig, PostgresStore};

const PATIENT: Duration = Duration::from_secs(30);

/// A server with TLS whose certificate is for `localhost`.
struct Server {
    localhost: String,
    ip: String,
    ca: String,
    other_ca: String,
}

impl Server {
    fn of_this_run() -> Self {
        let variable = |name: &str| {
            env::var(name).unwrap_or_else(|_| {
                panic!("{name} is not set: run `cargo xtask test`, which starts a server")
            })
        };
        let localhost = variable("ONCEONLY_POSTGRES_TLS_URL");
        assert!(localhost.contains("@localhost:"), "{localhost}");
        Self {
            ip: localhost.replacen("@localhost:", "@127.0.0.1:", 1),
            localhost,
            ca: variable("ONCEONLY_POSTGRES_TLS_CA"),
            other_ca: variable("ONCEONLY_POSTGRES_TLS_OTHER_CA"),
        }
    }
}

async fn connect(url: &str, options: &str) -> Result<PostgresStore, onceonly::StoreError> {
    let config = PostgresConfig::new().table(format!("tls_{:016x}", rand::random::<u64>()));
    config.connect(&format!("{url}?{options}")).await
}

async fn accepted(url: &str, options: &str, encrypted: bool) {
    let store = connect(url, options)
        .await
        .unwrap_or_else(|error| panic!("{options}: {error}"));
    let client = store.pool().get().await.unwrap();
    let ask = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    let ssl: bool = client.query_one(ask, &[]).await.unwrap().get(0);
    assert_eq!(ssl, encrypted, "{url} {options}");
}

async fn refused(url: &str, options: &str, reason: &str) {
    let Err(error) = connect(url, options).await else {
        panic!("{url} with {options} was let in");
    };
    let text = error.to_string();
    assert!(text.contains(reason), "{options}: {text}");
}

#[tokio::test]
async fn verify_full_takes_the_right_host_of_the_right_authority_only() {
    let server = Server::of_this_run();
    let full = |ca: &str| format!("sslmode=verify-full&sslrootcert={ca}");
    accepted(&server.localhost, &full(&server.ca), true).await;
    refused(&server.ip, &full(&server.ca), "not valid for name").await;
    refused(&server.localhost, &full(&server.other_ca), "UnknownIssuer").await;
    refused(
        &server.localhost,
        "sslmode=verify-full&sslrootcert=system",
        "UnknownIssuer",
    )
    .await;
}

#[tokio::test]
async fn verify_ca_takes_any_host_of_the_right_authority() {
    let server = Server::of_this_run();
    let by = |mode: &str, ca: &str| format!("sslmode={mode}&sslrootcert={ca}");
    accepted(&server.localhost, &by("verify-ca", &server.ca), true).await;
    accepted(&server.ip, &by("verify-ca", &server.ca), true).await;
    refused(
        &server.ip,
        &by("verify-ca", &server.other_ca),
        "UnknownIssuer",
    )
    .await;
    // As libpq: a root beside `require` is used.
    accepted(&server.ip, &by("require", &server.ca), true).await;
    refused(
        &server.ip,
        &by("require", &server.other_ca),
        "UnknownIssuer",
    )
    .await;
}

#[tokio::test]
async fn require_encrypts_and_takes_anybody() {
    let server = Server::of_this_run();
    accepted(&server.ip, "sslmode=require", true).await;
    accepted(&server.ip, "sslmode=prefer", true).await;
    accepted(&server.ip, "sslmode=disable", false).await;
}

#[tokio::test]
async fn root_that_is_no_certificate_is_named() {
    let server = Server::of_this_run();
    let by = |path: &str| format!("sslmode=verify-full&sslrootcert={path}");
    refused(&server.ip, &by("/no/such/file"), "/no/such/file").await;
    refused(
        &server.ip,
        &by("/dev/null"),
        "/dev/null holds no certificate",
    )
    .await;
}

#[tokio::test]
async fn claim_that_waits_is_cancelled_over_tls() {
    let server = Server::of_this_run();
    let options = format!("sslmode=verify-full&sslrootcert={}", server.ca);
    let store = connect(&server.localhost, &options).await.unwrap();
    store.migrate().await.unwrap();
    let event = Event::new("tls", "e").unwrap();
    let first = store.claim(&event, PATIENT).await.unwrap();
    let wait = Duration::from_millis(300);
    let error = store.claim(&event, wait).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::InFlight);
    // The server confirmed it: no error of the cancelling is attached.
    assert!(std::error::Error::source(&error).is_none(), "{error:?}");
    let tx = first.fresh().unwrap();
    let client = store.pool().get().await.unwrap();
    let ask = "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'transactionid' \
               AND pid IN (SELECT pid FROM pg_stat_ssl WHERE ssl)";
    let waiting: i64 = client.query_one(ask, &[]).await.unwrap().get(0);
    assert_eq!(waiting, 0);
    store.commit(tx).await.unwrap();
    assert!(store.claim(&event, PATIENT).await.unwrap().is_duplicate());
}
