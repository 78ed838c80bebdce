//! Deliveries that failed are kept, and replayed through the same handler.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test states what it expects"
)]

mod billing;

use ::billing::config::Config;
use ::billing::database::Database;
use axum::http::Request;
use serde_json::json;

use billing::{Billing, duplicate, failed, folder, plain, processed};

fn failing_first() -> Config {
    Config {
        fail_first: 100,
        ..plain()
    }
}

#[tokio::test]
async fn failed_delivery_is_kept_as_it_came() {
    let folder = folder();
    let billing = Billing::start(&folder, plain()).await;
    let request = Request::post("/webhooks/github")
        .header("x-github-delivery", "1")
        .header("x-github-event", "push")
        .header("authorization", "Bearer secret");
    let body = b"payload=%7B%7D \xff\0";
    assert_eq!(billing.send(request, &body[..]).await, failed());

    let letters = billing.receiver.database().dead_letters().await.unwrap();
    let [letter] = letters.as_slice() else {
        panic!("{letters:?}");
    };
    assert_eq!(
        (letter.source.as_str(), letter.event_id.as_str()),
        ("github", "1")
    );
    assert_eq!(letter.event_type.as_deref(), Some("push"));
    assert_eq!(letter.body, body);
    assert!(
        letter.headers.contains("x-github-event"),
        "{}",
        letter.headers
    );
    assert!(!letter.headers.contains("secret"), "{}", letter.headers);
    assert!(letter.error.contains("rejected"), "{}", letter.error);
}

#[tokio::test]
async fn letter_counts_attempts() {
    let folder = folder();
    let billing = Billing::start(&folder, plain()).await;
    for attempts in 1..=3 {
        assert_eq!(billing.invoice("evt_1", -5).await, failed());
        let letters = billing.letters().await;
        assert_eq!(letters.len(), 1);
        assert_eq!(letters[0]["attempts"], attempts);
    }
    assert!(billing.amounts().await.is_empty());
}

#[tokio::test]
async fn replayed_letter_is_processed_once() {
    let folder = folder();
    let billing = Billing::start(&folder, failing_first()).await;
    assert_eq!(billing.invoice("evt_1", 10).await, failed());
    assert_eq!(billing.replay().await, (1, 0, 0));
    assert_eq!(billing.replay().await, (0, 0, 0));
    assert_eq!(billing.invoice("evt_1", 10).await, duplicate());
    assert_eq!(billing.amounts().await, [10]);
}

#[tokio::test]
async fn letter_of_an_event_that_was_redelivered_is_duplicate() {
    let folder = folder();
    let billing = Billing::start(&folder, failing_first()).await;
    assert_eq!(billing.invoice("evt_1", 10).await, failed());
    assert_eq!(billing.invoice("evt_1", 10).await, processed());
    assert_eq!(billing.replay().await, (0, 1, 0));
    assert!(billing.letters().await.is_empty());
    assert_eq!(billing.amounts().await, [10]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replay_and_redelivery_race_to_one_credit() {
    let folder = folder();
    let billing = Billing::start(&folder, failing_first()).await;
    let other = Billing::start(&folder, plain()).await;
    assert_eq!(billing.invoice("evt_1", 10).await, failed());
    let (replayed, redelivered) = tokio::join!(billing.replay(), other.invoice("evt_1", 10));
    if redelivered == processed() {
        assert_eq!(replayed, (0, 1, 0));
    } else {
        assert_eq!((replayed, redelivered), ((1, 0, 0), duplicate()));
    }
    assert_eq!(billing.amounts().await, [10]);
}

#[tokio::test]
async fn letter_that_fails_again_stays() {
    let folder = folder();
    let billing = Billing::start(&folder, plain()).await;
    let no_account = json!({"id": "evt_1", "type": "invoice.paid", "amount": 10}).to_string();
    assert_eq!(
        billing.post("/webhooks/invoices", no_account).await,
        failed()
    );
    assert_eq!(billing.invoice("evt_2", 0).await, failed());
    assert_eq!(billing.replay().await, (0, 0, 2));
    let letters = billing.letters().await;
    assert_eq!(letters.len(), 2);
    assert!(
        letters.iter().all(|letter| letter["attempts"] == 2),
        "{letters:?}"
    );
}

#[tokio::test]
async fn letter_older_than_the_claims_is_not_replayed() {
    let folder = folder();
    let billing = Billing::start(&folder, failing_first()).await;
    assert_eq!(billing.invoice("evt_1", 10).await, failed());
    let file = rusqlite::Connection::open(folder.path().join("billing.db")).unwrap();
    let age = "UPDATE dead_letters SET failed_at = failed_at - 29 * 86400";
    assert_eq!(file.execute(age, ()).unwrap(), 1);
    assert_eq!(billing.replay().await, (0, 0, 0));
    assert!(billing.amounts().await.is_empty());
}
