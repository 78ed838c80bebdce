//! What a provider gets for deliveries, on an SQLite file.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test states what it expects"
)]

mod billing;

use std::time::Duration;

use ::billing::config::Config;
use futures_util::FutureExt;
use onceonly::{Claim, ClaimStore, Event};
use serde_json::json;

use billing::{Billing, duplicate, failed, folder, later, plain, processed};

#[tokio::test]
async fn second_delivery_is_duplicate() {
    let folder = folder();
    let billing = Billing::start(&folder, plain()).await;
    assert_eq!(billing.invoice("evt_1", 10).await, processed());
    assert_eq!(billing.invoice("evt_1", 10).await, duplicate());
    assert_eq!(billing.amounts().await, [10]);
}

#[tokio::test]
async fn second_delivery_to_another_process_is_duplicate() {
    let folder = folder();
    let one = Billing::start(&folder, plain()).await;
    let other = Billing::start(&folder, plain()).await;
    assert_eq!(one.invoice("evt_1", 10).await, processed());
    assert_eq!(other.invoice("evt_1", 10).await, duplicate());
    assert_eq!(one.amounts().await, [10]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn racing_deliveries_credit_once() {
    let folder = folder();
    let one = Billing::start(&folder, plain()).await;
    let other = Billing::start(&folder, plain()).await;
    let answers = tokio::join!(
        one.invoice("evt_1", 10),
        one.invoice("evt_1", 10),
        other.invoice("evt_1", 10),
        other.invoice("evt_1", 10)
    );
    let answers = [answers.0, answers.1, answers.2, answers.3];
    let count = |wanted| answers.iter().filter(|answer| **answer == wanted).count();
    assert_eq!(
        (count(processed()), count(duplicate())),
        (1, 3),
        "{answers:?}"
    );
    assert_eq!(one.amounts().await, [10]);
}

#[tokio::test]
async fn event_in_flight_is_503_and_never_200() {
    let folder = folder();
    let billing = Billing::start(&folder, plain()).await;
    let hasty = Billing::of(
        billing
            .receiver
            .clone()
            .with_wait(Duration::from_millis(50)),
    );
    let event = Event::new("invoices", "evt_1").unwrap();
    let open = billing.receiver.handler().begin(&event).await.unwrap();
    let answer = hasty.invoice("evt_1", 10).await;
    assert_eq!(answer, later("event is in flight elsewhere"));
    drop(open);
    assert_eq!(hasty.invoice("evt_1", 10).await, processed());
}

#[tokio::test]
async fn event_in_flight_in_another_process_is_503() {
    let folder = folder();
    let billing = Billing::start(&folder, plain()).await;
    let other = onceonly_sqlite::SqliteStore::open(folder.path().join("billing.db"));
    let other = other.await.unwrap();
    let event = Event::new("invoices", "evt_1").unwrap();
    let Claim::Fresh(open) = other.claim(&event, Duration::ZERO).await.unwrap() else {
        panic!("nobody else delivered it");
    };
    let hasty = Billing::of(
        billing
            .receiver
            .clone()
            .with_wait(Duration::from_millis(50)),
    );
    let answer = hasty.invoice("evt_1", 10).await;
    assert_eq!(answer, later("event is in flight elsewhere"));
    other.commit(open).await.unwrap();
    assert_eq!(hasty.invoice("evt_1", 10).await, duplicate());
}

#[tokio::test]
async fn failed_apply_is_500_and_its_redelivery_is_processed() {
    let folder = folder();
    let failing = Config {
        fail_first: 100,
        ..plain()
    };
    let billing = Billing::start(&folder, failing).await;
    assert_eq!(billing.invoice("evt_1", 10).await, failed());
    assert!(
        billing.amounts().await.is_empty(),
        "the credit is rolled back"
    );
    assert_eq!(billing.invoice("evt_1", 10).await, processed());
    assert_eq!(billing.invoice("evt_1", 10).await, duplicate());
    assert_eq!(billing.amounts().await, [10]);
}

#[tokio::test]
async fn delivery_whose_client_went_away_is_processed_when_it_comes_again() {
    let folder = folder();
    let billing = Billing::start(&folder, plain()).await;
    // Polled once, then dropped, as axum does when the connection is gone.
    assert!(billing.invoice("evt_1", 10).now_or_never().is_none());
    assert_eq!(billing.invoice("evt_1", 10).await, processed());
    assert_eq!(billing.amounts().await, [10]);
}

#[tokio::test]
async fn event_of_another_type_is_processed_without_a_credit() {
    let folder = folder();
    let billing = Billing::start(&folder, plain()).await;
    let voided = json!({"id": "evt_1", "type": "invoice.voided"}).to_string();
    let answer = billing.post("/webhooks/invoices", voided.clone()).await;
    assert_eq!(answer, processed());
    let again = billing.post("/webhooks/invoices", voided).await;
    assert_eq!(again, duplicate());
    assert!(billing.amounts().await.is_empty());
}

#[tokio::test]
async fn ids_of_two_sources_are_two_events() {
    let folder = folder();
    let billing = Billing::start(&folder, plain()).await;
    assert_eq!(billing.invoice("evt_1", 10).await, processed());
    let request = axum::http::Request::post("/webhooks/github")
        .header("x-github-delivery", "evt_1")
        .header("x-github-event", "ping");
    let answer = billing
        .send(request, r#"{"zen":"Keep it logically awesome."}"#)
        .await;
    assert_eq!(answer, processed());
    assert_eq!(billing.amounts().await, [10, 1]);
}
