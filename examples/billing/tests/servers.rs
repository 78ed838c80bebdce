//! The same receiver on PostgreSQL and on MySQL or MariaDB.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test states what it expects"
)]

mod billing;

use ::billing::config::Config;
use ::billing::database::{Database, MySql, Postgres};
use axum::http::StatusCode;
use mysql_async::prelude::Queryable;

use billing::{Billing, duplicate, failed, plain, processed};

/// Whatever the database, the provider gets the same.
async fn credits_once<D: Database>(database: D) {
    let failing = Config {
        fail_first: 100,
        ..plain()
    };
    let billing = Billing::on(database, failing).await;
    billing.receiver.database().migrate().await.unwrap();
    assert_eq!(billing.get("/health").await.status, StatusCode::OK);

    assert_eq!(billing.invoice("evt_1", 10).await, failed());
    let (one, other) = tokio::join!(billing.invoice("evt_1", 10), billing.invoice("evt_1", 10));
    let answers = [one, other];
    for answer in [processed(), duplicate()] {
        assert!(answers.contains(&answer), "{answers:?}");
    }
    assert_eq!(billing.amounts().await, [10]);

    for id in ["EVT_1", "evt_1 ", "\u{e9}vt", "e\u{301}vt"] {
        assert_eq!(billing.invoice(id, 20).await, failed());
        assert_eq!(billing.invoice(id, 0).await, failed());
    }
    let letters = billing.letters().await;
    assert_eq!(letters.len(), 5, "{letters:?}");
    let twice = letters.iter().filter(|letter| letter["attempts"] == 2);
    assert_eq!(twice.count(), 4, "{letters:?}");
    assert_eq!(billing.replay().await, (4, 1, 0));
    assert!(billing.letters().await.is_empty());
    assert_eq!(billing.amounts().await, [10, 20, 20, 20, 20]);

    assert_eq!(billing.invoice("evt_2", -1).await, failed());
    assert_eq!(billing.replay().await, (0, 0, 1));
}

fn given(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| {
        panic!("{variable} is not set: run `cargo xtask test`, which starts a server")
    })
}

/// A name that no other run has, and the URL of the database that has it.
fn beside(url: &str) -> (String, String) {
    let name = format!("billing_{:016x}", rand::random::<u64>());
    let (server, database) = url.rsplit_once('/').expect("a URL with a database");
    let options = database.find('?').map_or("", |at| &database[at..]);
    (format!("{server}/{name}{options}"), name)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_credits_once() {
    let server = given("ONCEONLY_POSTGRES_URL");
    let (url, name) = beside(&server);
    let (client, connection) = tokio_postgres::connect(&server, tokio_postgres::NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    client
        .batch_execute(&format!("CREATE DATABASE {name}"))
        .await
        .unwrap();
    let database = Postgres::connect(&url).await.unwrap();
    credits_once(database).await;
    let drop = format!("DROP DATABASE {name} WITH (FORCE)");
    client.batch_execute(&drop).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mysql_credits_once() {
    let server = given("ONCEONLY_MYSQL_URL");
    let (url, name) = beside(&server);
    let opts = mysql_async::Opts::from_url(&server).unwrap();
    let opts = mysql_async::OptsBuilder::from_opts(opts).prefer_socket(false);
    let mut conn = mysql_async::Conn::new(opts).await.unwrap();
    conn.query_drop(format!("CREATE DATABASE {name}"))
        .await
        .unwrap();
    let database = MySql::connect(&url).await.unwrap();
    credits_once(database).await;
    conn.query_drop(format!("DROP DATABASE {name}"))
        .await
        .unwrap();
}
