//! Ways to call: what compiles here compiles in a service.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test states what it expects"
)]

use std::sync::Arc;
use std::time::Duration;

use onceonly::{Claim, ClaimStore, Event, Handler};
use onceonly_sqlite::rusqlite::{self, Connection};
use onceonly_sqlite::{SqliteStore, SqliteTx};

async fn store() -> SqliteStore {
    let store = SqliteStore::in_memory().await.unwrap();
    let outside = Connection::open(store.path()).unwrap();
    outside
        .execute_batch("CREATE TABLE ledger (account TEXT, amount INTEGER)")
        .unwrap();
    store
}

fn event(id: &str) -> Event {
    Event::new("shapes", id).unwrap()
}

/// A function of a team's own that knows nothing of onceonly.
fn credit(connection: &Connection, account: &str, amount: i64) -> rusqlite::Result<usize> {
    let mut insert = connection.prepare_cached("INSERT INTO ledger VALUES (?1, ?2)")?;
    insert.execute((account, amount))
}

#[tokio::test]
async fn handle_runs_in_a_spawned_task_with_awaits_between_statements() {
    let handler = Handler::new(store().await);
    let task = tokio::spawn(async move {
        let account = String::from("acme");
        let event = event("1");
        let outcome = handler.handle(&event, async |tx| {
            credit(tx, &account, 1)?;
            tokio::task::yield_now().await;
            let savepoint = tx.savepoint()?;
            credit(&savepoint, &account, 2)?;
            tokio::task::yield_now().await;
            savepoint.release()?;
            let total: i64 =
                tx.query_row("SELECT sum(amount) FROM ledger", (), |row| row.get(0))?;
            Ok::<_, rusqlite::Error>(total)
        });
        outcome.await.unwrap().processed()
    });
    assert_eq!(task.await.unwrap(), Some(3));
}

#[tokio::test]
async fn guard_is_committed_in_a_spawned_task() {
    let handler = Handler::new(store().await);
    let task = tokio::spawn(async move {
        match handler.begin(&event("1")).await.unwrap() {
            Claim::Fresh(mut claim) => {
                credit(&claim, "acme", 1).unwrap();
                tokio::task::yield_now().await;
                claim
                    .run(|connection| credit(connection, "acme", 2))
                    .await
                    .unwrap()
                    .unwrap();
                claim.commit().await.unwrap();
            }
            Claim::Duplicate(_) => panic!("it was never claimed"),
        }
        handler.begin(&event("1")).await.unwrap().is_duplicate()
    });
    assert!(task.await.unwrap());
}

#[tokio::test]
async fn store_is_used_as_an_object() {
    let store: Arc<dyn ClaimStore<Tx = SqliteTx>> = Arc::new(store().await);
    let task = tokio::spawn(async move {
        let claim = store
            .claim(&event("1"), Duration::from_secs(2))
            .await
            .unwrap();
        store.commit(claim.fresh().unwrap()).await.unwrap();
        store.prune(Duration::from_secs(60), 10).await.unwrap()
    });
    assert_eq!(task.await.unwrap(), 0);
}
