//! Session settings of the team's that change what a statement means.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test states what it expects"
)]

mod harness;

use std::time::Duration;

use harness::MySqlHarness;
use mysql_async::prelude::Queryable;
use onceonly::{ClaimRecords, ClaimStore, Event, Forget};
use onceonly_conformance::{Harness, StoreOptions};
use onceonly_mysql::MySqlConfig;

const WAIT: Duration = Duration::from_secs(2);

async fn claims_commit_and_repeat_under(settings: &[&str]) {
    let world = MySqlHarness::setup().await.unwrap();
    let opts = world
        .opts(&StoreOptions::default())
        .setup(settings.iter().map(ToString::to_string).collect());
    let store = MySqlConfig::new()
        .max_connections(2)
        .from_opts(opts)
        .unwrap();
    let names = [
        "plain",
        "it's",
        "back\\slash",
        "\"quoted\"",
        "`tick`",
        "a'; DROP TABLE ledger; --",
    ];
    for name in names {
        let event = Event::new("modes", name)
            .unwrap()
            .with_type("it's")
            .unwrap();
        let mut tx = store.claim(&event, WAIT).await.unwrap().fresh().unwrap();
        world.effect(&mut tx, name).await.unwrap();
        store.commit(tx).await.unwrap();
        assert!(
            store.claim(&event, WAIT).await.unwrap().is_duplicate(),
            "{name}"
        );
        assert!(store.is_claimed(event.source(), event.id()).await.unwrap());
        assert_eq!(world.effects(name).await.unwrap(), 1, "{name}");

        let rolled_back = Event::new("modes", format!("{name} back")).unwrap();
        drop(store.claim(&rolled_back, WAIT).await.unwrap());
        let again = store
            .claim(&rolled_back, WAIT)
            .await
            .unwrap()
            .fresh()
            .unwrap();
        store.rollback(again).await.unwrap();
        assert_eq!(world.claims(&rolled_back).await.unwrap(), 0);
    }
    let forgotten = Event::new("modes", "plain").unwrap();
    let forget = store.forget(forgotten.source(), forgotten.id(), WAIT).await;
    assert_eq!(forget.unwrap(), Forget::Forgotten);
    let other = Event::new("modes", "it's").unwrap();
    world.age(&other, Duration::from_secs(7_200)).await.unwrap();
    assert_eq!(
        store.prune(Duration::from_secs(3_600), 100).await.unwrap(),
        1
    );
    world.teardown().await.unwrap();
}

#[tokio::test]
async fn quotes_and_backslashes_may_mean_anything() {
    claims_commit_and_repeat_under(&["SET SESSION sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'"])
        .await;
}

#[tokio::test]
async fn lax_and_strict_modes_are_alike() {
    claims_commit_and_repeat_under(&["SET SESSION sql_mode = ''"]).await;
    claims_commit_and_repeat_under(&["SET SESSION sql_mode = 'TRADITIONAL,ANSI'"]).await;
}

#[tokio::test]
async fn transactions_do_not_depend_on_session_defaults() {
    claims_commit_and_repeat_under(&["SET SESSION autocommit = 0"]).await;
    claims_commit_and_repeat_under(&["SET SESSION completion_type = 'CHAIN'"]).await;
    claims_commit_and_repeat_under(&["SET SESSION completion_type = 'RELEASE'"]).await;
    claims_commit_and_repeat_under(&["SET SESSION TRANSACTION READ ONLY"]).await;
}

#[tokio::test]
async fn isolation_of_the_session_is_not_the_claims() {
    for level in ["READ UNCOMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
        claims_commit_and_repeat_under(&[&format!(
            "SET SESSION TRANSACTION ISOLATION LEVEL {level}"
        )])
        .await;
    }
}

#[tokio::test]
async fn uncommitted_claims_are_no_claims_in_read_uncommitted() {
    let world = MySqlHarness::setup().await.unwrap();
    let opts = world.opts(&StoreOptions::default()).setup(vec![
        "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
    ]);
    let store = MySqlConfig::new().from_opts(opts).unwrap();
    let event = Event::new("modes", "open").unwrap();
    let tx = store.claim(&event, WAIT).await.unwrap().fresh().unwrap();
    assert!(!store.is_claimed(event.source(), event.id()).await.unwrap());
    drop(tx);
    world.teardown().await.unwrap();
}

#[tokio::test]
async fn messages_in_another_language_are_understood() {
    let world = MySqlHarness::setup().await.unwrap();
    let languages: Vec<String> = ["de_DE", "ja_JP", "fr_FR", "ru_RU", "zh_CN"]
        .map(|name| format!("SET SESSION lc_messages = '{name}'"))
        .to_vec();
    for (number, language) in languages.into_iter().enumerate() {
        let opts = world
            .opts(&StoreOptions::default())
            .setup(vec![language.clone()]);
        let store = MySqlConfig::new().from_opts(opts).unwrap();
        let event = Event::new("modes", format!("language {number}")).unwrap();
        let mut tx = store.claim(&event, WAIT).await.unwrap().fresh().unwrap();
        tx.query_drop("DO 1").await.unwrap();
        store.commit(tx).await.unwrap();
        assert!(
            store.claim(&event, WAIT).await.unwrap().is_duplicate(),
            "{language}"
        );

        let ended = Event::new("modes", format!("ended {number}")).unwrap();
        let mut tx = store.claim(&ended, WAIT).await.unwrap().fresh().unwrap();
        tx.query_drop("ROLLBACK").await.unwrap();
        let error = store.commit(tx).await.unwrap_err();
        assert!(
            error.to_string().contains("claim is absent"),
            "{language}: {error}"
        );
    }
    world.teardown().await.unwrap();
}
