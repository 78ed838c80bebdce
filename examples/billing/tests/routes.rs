//! What a provider gets, on an SQLite file.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test states what it expects"
)]

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use billing::config::{Config, Kind};
use billing::database::{Database, MySql, Postgres, Sqlite};
use billing::receiver::Receiver;
use billing::routes::{BODY_LIMIT, router};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tempfile::TempDir;
use tower::ServiceExt;

struct Billing {
    router: Router,
    receiver: Receiver<Sqlite>,
    _folder: TempDir,
}

impl Billing {
    async fn start(fail_first: u8, github_secret: Option<&str>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("billing.db").display().to_string();
        let database = Sqlite::open(&path).await.unwrap();
        database.migrate().await.unwrap();
        let receiver = Receiver::new(database, config(&path, fail_first, github_secret));
        Self {
            router: router(receiver.clone()),
            receiver,
            _folder: folder,
        }
    }

    async fn invoice(&self, id: &str, amount: i64) -> (StatusCode, Value) {
        let body = json!({"id": id, "type": "invoice.paid", "account": "acme", "amount": amount});
        send(
            &self.router,
            Request::post("/webhooks/invoices"),
            body.to_string(),
        )
        .await
    }

    async fn ledger(&self) -> usize {
        let (status, entries) = send(&self.router, Request::get("/ledger"), String::new()).await;
        assert_eq!(status, StatusCode::OK);
        entries.as_array().unwrap().len()
    }
}

fn config(url: &str, fail_first: u8, github_secret: Option<&str>) -> Config {
    Config {
        database: Kind::of(url),
        bind: ([127, 0, 0, 1], 0).into(),
        github_secret: github_secret.map(str::to_owned),
        fail_first,
    }
}

async fn send(
    router: &Router,
    request: axum::http::request::Builder,
    body: impl Into<Body>,
) -> (StatusCode, Value) {
    let response = router
        .clone()
        .oneshot(request.body(body.into()).unwrap())
        .await
        .unwrap();
    let status = response.status();
    if status == StatusCode::SERVICE_UNAVAILABLE {
        assert!(
            response.headers().contains_key(header::RETRY_AFTER),
            "a 503 without Retry-After"
        );
    }
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (
        status,
        serde_json::from_slice(&bytes).unwrap_or(Value::Null),
    )
}

fn processed() -> (StatusCode, Value) {
    (StatusCode::OK, json!({"result": "processed"}))
}

fn duplicate() -> (StatusCode, Value) {
    (StatusCode::OK, json!({"result": "duplicate"}))
}

#[tokio::test]
async fn first_delivery_is_processed_and_second_is_duplicate() {
    let billing = Billing::start(0, None).await;
    assert_eq!(billing.invoice("evt_1", 10).await, processed());
    assert_eq!(billing.invoice("evt_1", 10).await, duplicate());
    assert_eq!(billing.ledger().await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn racing_deliveries_credit_once() {
    let billing = Billing::start(0, None).await;
    let (a, b, c) = tokio::join!(
        billing.invoice("evt_1", 10),
        billing.invoice("evt_1", 10),
        billing.invoice("evt_1", 10)
    );
    let answers = [a, b, c];
    assert_eq!(
        answers
            .iter()
            .filter(|answer| **answer == processed())
            .count(),
        1
    );
    assert_eq!(
        answers
            .iter()
            .filter(|answer| **answer == duplicate())
            .count(),
        2
    );
    assert_eq!(billing.ledger().await, 1);
}

#[tokio::test]
async fn a_failed_apply_is_500_and_the_retry_is_processed() {
    let billing = Billing::start(100, None).await;
    assert_eq!(
        billing.invoice("evt_1", 10).await.0,
        StatusCode::INTERNAL_SERVER_ERROR
    );
    assert_eq!(billing.ledger().await, 0);
    assert_eq!(billing.invoice("evt_1", 10).await, processed());
    assert_eq!(billing.invoice("evt_1", 10).await, duplicate());
    assert_eq!(billing.ledger().await, 1);
}

#[tokio::test]
async fn an_event_in_flight_is_503() {
    let billing = Billing::start(0, None).await;
    let event = onceonly::Event::new("invoices", "evt_1").unwrap();
    let open = billing.receiver.handler().begin(&event).await.unwrap();
    assert_eq!(
        billing.invoice("evt_1", 10).await.0,
        StatusCode::SERVICE_UNAVAILABLE
    );
    drop(open);
    assert_eq!(billing.invoice("evt_1", 10).await, processed());
}

#[tokio::test]
async fn a_dead_letter_is_replayed_through_the_same_handler() {
    let billing = Billing::start(0, None).await;
    assert_eq!(
        billing.invoice("evt_1", -5).await.0,
        StatusCode::INTERNAL_SERVER_ERROR
    );
    assert_eq!(
        billing.invoice("evt_1", -5).await.0,
        StatusCode::INTERNAL_SERVER_ERROR
    );
    let (_, letters) = send(
        &billing.router,
        Request::get("/dead-letters"),
        String::new(),
    )
    .await;
    assert_eq!(letters[0]["attempts"], 2);

    let failing = Billing::start(100, None).await;
    assert_eq!(
        failing.invoice("evt_1", 10).await.0,
        StatusCode::INTERNAL_SERVER_ERROR
    );
    let replay = || {
        send(
            &failing.router,
            Request::post("/dead-letters/replay"),
            String::new(),
        )
    };
    assert_eq!(
        replay().await,
        (StatusCode::OK, json!({"done": 1, "left": 0}))
    );
    assert_eq!(
        replay().await,
        (StatusCode::OK, json!({"done": 0, "left": 0}))
    );
    assert_eq!(failing.ledger().await, 1);
    assert_eq!(failing.invoice("evt_1", 10).await, duplicate());
}

#[tokio::test]
async fn a_letter_that_fails_again_stays() {
    let billing = Billing::start(0, None).await;
    billing.invoice("evt_1", 0).await;
    let replay = send(
        &billing.router,
        Request::post("/dead-letters/replay"),
        String::new(),
    )
    .await;
    assert_eq!(replay, (StatusCode::OK, json!({"done": 0, "left": 1})));
}

#[tokio::test]
async fn bad_ids_are_400() {
    let billing = Billing::start(0, None).await;
    let long = "x".repeat(256);
    for id in ["", long.as_str(), "a\0b", "a\nb"] {
        assert_eq!(
            billing.invoice(id, 10).await.0,
            StatusCode::BAD_REQUEST,
            "{id:?}"
        );
    }
    for body in [&b"{}"[..], b"", b"no json", b"{\"id\":\"\xff\"}"] {
        let answer = send(&billing.router, Request::post("/webhooks/invoices"), body).await;
        assert_eq!(answer.0, StatusCode::BAD_REQUEST, "{body:?}");
    }
    assert_eq!(billing.ledger().await, 0);
}

#[tokio::test]
async fn a_body_over_the_limit_is_413() {
    let billing = Billing::start(0, None).await;
    let body = vec![b' '; 2 * BODY_LIMIT];
    let answer = send(&billing.router, Request::post("/webhooks/invoices"), body).await;
    assert_eq!(answer.0, StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn github_deliveries_must_be_signed_where_a_secret_is_set() {
    let billing = Billing::start(0, Some("It's a Secret to Everybody")).await;
    let request = |signature: &str| {
        Request::post("/webhooks/github")
            .header("x-github-delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958")
            .header("x-github-event", "ping")
            .header("x-hub-signature-256", signature)
    };
    let signed = "sha256=03c9fe49f3e14c83d21b96b14f1a4ae8bb0e6b1d3e7b0b3c3ab37d0be4f4b3d5";
    assert_eq!(
        send(&billing.router, request(signed), "{}").await.0,
        StatusCode::UNAUTHORIZED
    );
    assert_eq!(
        send(&billing.router, request("nonsense"), "{}").await.0,
        StatusCode::UNAUTHORIZED
    );
    assert_eq!(billing.ledger().await, 0);
}

#[tokio::test]
async fn github_deliveries_without_an_id_are_400() {
    let billing = Billing::start(0, None).await;
    let named = Request::post("/webhooks/github").header("x-github-event", "ping");
    assert_eq!(
        send(&billing.router, named, "{}").await.0,
        StatusCode::BAD_REQUEST
    );
    let invalid = Request::post("/webhooks/github")
        .header("x-github-event", "ping")
        .header("x-github-delivery", &b"\xff\xfe"[..]);
    assert_eq!(
        send(&billing.router, invalid, "{}").await.0,
        StatusCode::BAD_REQUEST
    );
}

#[tokio::test]
async fn a_missing_schema_is_503() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("empty.db").display().to_string();
    let database = Sqlite::open(&path).await.unwrap();
    let router = router(Receiver::new(database, config(&path, 0, None)));
    let body = r#"{"id":"evt_1","type":"invoice.paid","account":"acme","amount":10}"#;
    let answer = send(&router, Request::post("/webhooks/invoices"), body).await;
    assert_eq!(answer.0, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(answer.1["error"], "schema or settings unfit");
}

#[tokio::test]
async fn an_unreachable_database_says_so() {
    assert!(Postgres::connect("no url").await.is_err());
    assert!(MySql::connect("no url").await.is_err());
    let error = Sqlite::open("/nowhere/at/all/billing.db")
        .await
        .unwrap_err();
    assert!(error.to_string().contains("directory must exist"), "{error}");
}
