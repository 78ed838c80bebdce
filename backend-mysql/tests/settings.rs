//! Server settings under which a COMMIT does not outlive a power failure.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test states what it expects"
)]

use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts};
use onceonly::{ClaimStore, Event, StoreErrorKind};
use onceonly_mysql::{MySqlConfig, UnsafeSetting};
use onceonly_test_servers::MariaDbServer;

#[tokio::test]
async fn lazy_flushing_is_refused_unless_it_is_allowed_by_name() {
    let server = tokio::task::spawn_blocking(MariaDbServer::start)
        .await
        .unwrap()
        .unwrap();
    let opts = Opts::from_url(&server.url()).unwrap();
    let strict = MySqlConfig::new().from_opts(opts.clone()).unwrap();
    strict.migrate().await.unwrap();
    let mut conn = Conn::new(opts.clone()).await.unwrap();
    for value in [0, 2] {
        conn.query_drop(format!(
            "SET GLOBAL innodb_flush_log_at_trx_commit = {value}"
        ))
        .await
        .unwrap();
        let error = strict.check().await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Schema);
        assert!(error.to_string().contains("set it to 1"), "{error}");

        let at_first_use = MySqlConfig::new().from_opts(opts.clone()).unwrap();
        let event = Event::new("settings", "a").unwrap();
        let error = at_first_use
            .claim(&event, Duration::ZERO)
            .await
            .unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Schema, "{error}");

        let allowed = MySqlConfig::new()
            .allow_unsafe(UnsafeSetting::FlushLogAtTrxCommit)
            .from_opts(opts.clone())
            .unwrap();
        allowed.check().await.unwrap();
    }
}
