//! Billing inside the test: its routes, on a real database, without a socket.
#![allow(dead_code, reason = "each test file uses a part of it")]

use axum::Router;
use axum::body::Body;
use axum::http::request::Builder;
use axum::http::{Request, StatusCode, header};
use billing::config::{Config, Place};
use billing::database::{Database, Sqlite};
use billing::receiver::Receiver;
use billing::routes::router;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tempfile::TempDir;
use tower::ServiceExt;

pub(crate) struct Billing<D: Database = Sqlite> {
    pub(crate) router: Router,
    pub(crate) receiver: Receiver<D>,
}

/// What the provider got.
#[derive(Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: Value,
    pub(crate) retry_after: Option<String>,
}

pub(crate) fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// Settings that plant no failures and ask for no signature.
pub(crate) fn plain() -> Config {
    Config::on(Place::Sqlite("unused".into()))
}

impl Billing {
    /// On the file of this folder, which other receivers may share.
    pub(crate) async fn start(folder: &TempDir, config: Config) -> Self {
        let path = folder.path().join("billing.db");
        Self::on(Sqlite::open(path).await.unwrap(), config).await
    }
}

impl<D: Database> Billing<D> {
    pub(crate) async fn on(database: D, config: Config) -> Self {
        database.migrate().await.unwrap();
        Self::of(Receiver::new(database, config))
    }

    pub(crate) fn of(receiver: Receiver<D>) -> Self {
        Self {
            router: router(receiver.clone()),
            receiver,
        }
    }

    pub(crate) async fn send(&self, request: Builder, body: impl Into<Body>) -> Answer {
        let request = request.body(body.into()).unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Answer {
            status: parts.status,
            body: serde_json::from_slice(&body).unwrap_or(Value::Null),
            retry_after: parts
                .headers
                .get(header::RETRY_AFTER)
                .map(|value| value.to_str().unwrap().to_owned()),
        }
    }

    pub(crate) async fn post(&self, path: &str, body: impl Into<Body>) -> Answer {
        self.send(Request::post(path), body).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Request::get(path), "").await
    }

    pub(crate) async fn invoice(&self, id: &str, amount: i64) -> Answer {
        let body = json!({"id": id, "type": "invoice.paid", "account": "acme", "amount": amount});
        self.post("/webhooks/invoices", body.to_string()).await
    }

    /// The amounts of the ledger's lines.
    pub(crate) async fn amounts(&self) -> Vec<i64> {
        let ledger = self.get("/ledger").await;
        assert_eq!(ledger.status, StatusCode::OK);
        let lines = ledger.body.as_array().unwrap().iter();
        lines.map(|line| line["amount"].as_i64().unwrap()).collect()
    }

    pub(crate) async fn letters(&self) -> Vec<Value> {
        let letters = self.get("/dead-letters").await;
        assert_eq!(letters.status, StatusCode::OK);
        letters.body.as_array().unwrap().clone()
    }

    /// How many letters were processed, duplicates, and failed again.
    pub(crate) async fn replay(&self) -> (u64, u64, u64) {
        let replayed = self.post("/dead-letters/replay", "").await;
        assert_eq!(replayed.status, StatusCode::OK);
        let count = |name: &str| replayed.body[name].as_u64().unwrap();
        (count("processed"), count("duplicates"), count("failed"))
    }
}

pub(crate) fn processed() -> Answer {
    ok("processed")
}

pub(crate) fn duplicate() -> Answer {
    ok("duplicate")
}

/// 500: the provider retries on its own schedule.
pub(crate) fn failed() -> Answer {
    Answer {
        status: StatusCode::INTERNAL_SERVER_ERROR,
        body: json!({"error": "apply failed"}),
        retry_after: None,
    }
}

/// 503: the provider may come back soon.
pub(crate) fn later(reason: &str) -> Answer {
    Answer {
        status: StatusCode::SERVICE_UNAVAILABLE,
        body: json!({ "error": reason }),
        retry_after: Some("1".to_owned()),
    }
}

fn ok(result: &str) -> Answer {
    Answer {
        status: StatusCode::OK,
        body: json!({ "result": result }),
        retry_after: None,
    }
}
