//! Requests that are no deliveries, and databases that are none.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test states what it expects"
)]

mod billing;

use std::io::Read;
use std::sync::Arc;

use ::billing::config::Config;
use ::billing::database::{MySql, Postgres, Sqlite};
use ::billing::receiver::Receiver;
use axum::http::{Request, StatusCode};
use hmac::{Hmac, Mac};
use sha2::Sha256;

use billing::{Billing, folder, later, plain, processed};

const SECRET: &str = "It's a Secret to Everybody";

fn ping() -> axum::http::request::Builder {
    Request::post("/webhooks/github")
        .header("x-github-delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958")
        .header("x-github-event", "ping")
}

#[tokio::test]
async fn strange_ids_are_400() {
    let folder = folder();
    let billing = Billing::start(&folder, plain()).await;
    let long = "x".repeat(256);
    for id in ["", &long, "a\0b", "a\nb", "\u{7f}", "\u{85}"] {
        let answer = billing.invoice(id, 10).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{id:?}");
        let reason = answer.body["error"].as_str().unwrap();
        assert!(reason.starts_with("event id "), "{id:?}: {reason}");
    }
    assert_eq!(billing.invoice(&long[1..], 10).await, processed());
    assert_eq!(billing.amounts().await.len(), 1);
}

#[tokio::test]
async fn body_without_an_id_is_400() {
    let folder = folder();
    let billing = Billing::start(&folder, plain()).await;
    let bodies = [
        &b""[..],
        b"no json",
        b"{}",
        b"[]",
        b"{\"id\":7,\"type\":\"invoice.paid\"}",
        b"{\"id\":\"evt_\xff\",\"type\":\"invoice.paid\",\"account\":\"acme\",\"amount\":1}",
    ];
    for body in bodies {
        let answer = billing.post("/webhooks/invoices", body).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{body:?}");
    }
    assert!(billing.amounts().await.is_empty());
    assert!(billing.letters().await.is_empty());
}

#[tokio::test]
async fn github_headers_that_name_no_event_are_400() {
    let folder = folder();
    let billing = Billing::start(&folder, plain()).await;
    let named = || Request::post("/webhooks/github").header("x-github-event", "ping");
    let missing = billing.send(named(), "{}").await;
    assert_eq!(missing.status, StatusCode::BAD_REQUEST);
    assert_eq!(missing.body["error"], "header x-github-delivery is missing");
    for id in [&b""[..], b"\xff\xfe", b"a\tb", "x".repeat(256).as_bytes()] {
        let answer = billing
            .send(named().header("x-github-delivery", id), "{}")
            .await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{id:?}");
    }
    let untyped = Request::post("/webhooks/github").header("x-github-delivery", "1");
    let untyped = billing.send(untyped, "{}").await;
    assert_eq!(untyped.status, StatusCode::BAD_REQUEST);
    assert!(billing.amounts().await.is_empty());
}

#[tokio::test]
async fn ten_megabytes_are_413() {
    let folder = folder();
    let billing = Billing::start(&folder, plain()).await;
    for path in ["/webhooks/invoices", "/webhooks/github"] {
        let answer = billing.post(path, vec![b' '; 10_000_000]).await;
        assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE, "{path}");
    }
}

#[tokio::test]
async fn unsigned_delivery_is_401_where_a_secret_is_set() {
    let folder = folder();
    let signed = Config {
        github_secret: Some(SECRET.to_owned()),
        ..plain()
    };
    let billing = Billing::start(&folder, signed).await;
    let sign = |body: &str| {
        let mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
        hex::encode(mac.chain_update(body).finalize().into_bytes())
    };
    let body = r#"{"zen":"Anything added dilutes everything else."}"#;
    let signature = sign(body);
    let wrong = [
        String::new(),
        "nonsense".to_owned(),
        signature.clone(),
        format!("sha256={}", &signature[2..]),
        format!("sha1={signature}"),
        format!("sha256={}", sign("{}")),
    ];
    for header in wrong {
        let answer = billing
            .send(ping().header("x-hub-signature-256", &header), body)
            .await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{header}");
    }
    let unsigned = billing.send(ping(), body).await;
    assert_eq!(unsigned.status, StatusCode::UNAUTHORIZED);
    assert!(billing.amounts().await.is_empty());

    let header = format!("sha256={signature}");
    let answer = billing
        .send(ping().header("x-hub-signature-256", header), body)
        .await;
    assert_eq!(answer, processed());
}

/// Runs `deliver` and returns what was logged meanwhile.
async fn logged(deliver: impl Future<Output = ()>) -> String {
    let file = tempfile::tempfile().unwrap();
    let mut log = file.try_clone().unwrap();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(Arc::new(file))
        .with_ansi(false)
        .finish();
    let guard = tracing::subscriber::set_default(subscriber);
    deliver.await;
    drop(guard);
    let mut text = String::new();
    std::io::Seek::rewind(&mut log).unwrap();
    log.read_to_string(&mut text).unwrap();
    text
}

#[tokio::test]
async fn missing_schema_is_503_and_the_log_names_the_fix() {
    let folder = folder();
    let database = Sqlite::open(folder.path().join("empty.db")).await.unwrap();
    let billing = Billing::of(Receiver::new(database, plain()));
    let log = logged(async {
        let answer = billing.invoice("evt_1", 10).await;
        assert_eq!(answer, later("schema or settings unfit"));
    });
    let log = log.await;
    assert!(log.contains("migrate"), "{log}");
    let health = billing.get("/health").await;
    assert_eq!(health, later("schema or settings unfit"));
}

#[tokio::test]
async fn database_that_went_away_is_503_and_the_log_says_so() {
    // Nobody listens on port 1.
    let mut server = tokio_postgres::Config::new();
    server
        .host("127.0.0.1")
        .port(1)
        .user("app")
        .password("hunter2");
    let manager = deadpool_postgres::Manager::new(server, tokio_postgres::NoTls);
    let pool = deadpool_postgres::Pool::builder(manager).build().unwrap();
    let store = onceonly_postgres::PostgresStore::from_pool(pool).unwrap();
    let billing = Billing::of(Receiver::new(Postgres::new(store), plain()));
    let log = logged(async {
        let answer = billing.invoice("evt_1", 10).await;
        assert_eq!(answer, later("database unavailable"));
        let ledger = billing.get("/ledger").await;
        assert_eq!(ledger, later("database unavailable"));
    });
    let log = log.await;
    assert!(log.contains("refused"), "{log}");
    assert!(!log.contains("hunter2"), "{log}");
}

#[tokio::test]
async fn database_that_never_was_is_an_error_at_start() {
    let folder = folder();
    let nowhere = folder.path().join("no folder").join("billing.db");
    let error = Sqlite::open(nowhere).await.unwrap_err().to_string();
    assert!(error.contains("directory must exist"), "{error}");
    std::fs::write(folder.path().join("text"), "this is no database".repeat(99)).unwrap();
    let error = Sqlite::open(folder.path().join("text")).await.unwrap_err();
    assert!(error.to_string().contains("not"), "{error}");
    for url in ["no url", "postgres://app:hunter2@127.0.0.1:1/billing"] {
        let error = Postgres::connect(url).await.unwrap_err().to_string();
        assert!(!error.contains("hunter2"), "{error}");
    }
    for url in ["no url", "mysql://app:hunter2@127.0.0.1:1/billing"] {
        let error = MySql::connect(url).await.unwrap_err().to_string();
        assert!(!error.contains("hunter2"), "{error}");
    }
}
