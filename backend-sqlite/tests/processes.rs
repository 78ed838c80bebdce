//! Several processes on one file: they take turns, and what one acknowledged outlives its kill.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test states what it expects"
)]

use std::collections::HashSet;
use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use onceonly::{Claim, ClaimStore, Event, Handler, StoreErrorKind};
use onceonly_sqlite::rusqlite::Connection;
use onceonly_sqlite::{SqliteStore, SqliteTx};

const FILE: &str = "ONCEONLY_SQLITE_CHILD_FILE";
const ROLE: &str = "ONCEONLY_SQLITE_CHILD_ROLE";
const PATIENT: Duration = Duration::from_secs(30);

/// This test's program again, as another process.
fn child(file: &Path, role: &str) -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", "entry_of_child_processes", "--nocapture"])
        .env(FILE, file)
        .env(ROLE, role)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// What children run. Without the variables, as in a normal test run, there is nothing to do.
#[tokio::test]
async fn entry_of_child_processes() {
    let (Ok(file), Ok(role)) = (env::var(FILE), env::var(ROLE)) else {
        return;
    };
    let store = SqliteStore::open(file).await.unwrap();
    match role.as_str() {
        "hold" => {
            let tx = claim(&store, &event("held")).await;
            credit(&tx, "held");
            say("holding");
            let _ = std::io::stdin().lines().next();
            drop(tx);
        }
        "deliver for ever" => {
            let handler = Handler::new(store);
            for number in 0_u64.. {
                let id = number.to_string();
                deliver(&handler, &id).await;
                say(&format!("processed {id}"));
            }
        }
        "race" => {
            store.migrate().await.unwrap();
            let handler = Handler::new(store).with_wait(PATIENT);
            for number in 0..200 {
                deliver(&handler, &format!("race/{number}")).await;
            }
        }
        role => panic!("no such role: {role}"),
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n> {line}").unwrap();
    out.flush().unwrap();
}

/// What a child said, line by line, until its end.
fn lines(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok)
        .filter_map(|line| line.strip_prefix("> ").map(str::to_owned))
}

fn event(id: &str) -> Event {
    Event::new("processes", id).unwrap()
}

async fn claim(store: &SqliteStore, event: &Event) -> SqliteTx {
    store.claim(event, PATIENT).await.unwrap().fresh().unwrap()
}

fn credit(tx: &SqliteTx, id: &str) {
    tx.execute("INSERT INTO ledger VALUES (?1)", [id]).unwrap();
}

async fn deliver(handler: &Handler<SqliteStore>, id: &str) {
    let apply = async |tx: &mut SqliteTx| tx.execute("INSERT INTO ledger VALUES (?1)", [id]);
    handler.handle(&event(id), apply).await.unwrap();
}

async fn world(file: &Path) -> SqliteStore {
    let store = SqliteStore::open(file).await.unwrap();
    store.migrate().await.unwrap();
    Connection::open(file)
        .unwrap()
        .execute_batch("CREATE TABLE ledger (id TEXT NOT NULL)")
        .unwrap();
    store
}

fn ids(file: &Path, sql: &str) -> Vec<String> {
    let connection = Connection::open(file).unwrap();
    let mut ids = connection.prepare(sql).unwrap();
    ids.query_map((), |row| row.get(0))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap()
}

#[tokio::test]
async fn claim_waits_for_another_process_and_its_kill_frees_the_key() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("world.db");
    let store = world(&file).await;
    let mut holder = child(&file, "hold");
    assert_eq!(lines(&mut holder).next().as_deref(), Some("holding"));

    let held = event("held");
    for wait in [Duration::ZERO, Duration::from_millis(100)] {
        let error = store.claim(&held, wait).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::InFlight);
    }
    let waiting = tokio::spawn({
        let (store, held) = (store.clone(), held.clone());
        async move { store.claim(&held, PATIENT).await }
    });
    while store.waiting() == 0 {
        tokio::task::yield_now().await;
    }
    holder.kill().unwrap();
    holder.wait().unwrap();
    let tx = waiting.await.unwrap().unwrap().fresh().unwrap();
    credit(&tx, "held");
    store.commit(tx).await.unwrap();
    assert_eq!(ids(&file, "SELECT id FROM ledger"), ["held"]);
}

#[tokio::test]
async fn committed_event_is_a_duplicate_while_another_process_writes() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("world.db");
    let store = world(&file).await;
    let tx = claim(&store, &event("done")).await;
    store.commit(tx).await.unwrap();
    let mut holder = child(&file, "hold");
    assert_eq!(lines(&mut holder).next().as_deref(), Some("holding"));
    let claim = store.claim(&event("done"), Duration::ZERO).await.unwrap();
    assert!(matches!(claim, Claim::Duplicate(_)));
    holder.kill().unwrap();
    holder.wait().unwrap();
}

#[tokio::test]
async fn acknowledged_events_outlive_sigkill_and_no_half_of_one_does() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("world.db");
    drop(world(&file).await);
    let mut acknowledged = HashSet::new();
    for round in 0..5 {
        let mut worker = child(&file, "deliver for ever");
        let mut lines = lines(&mut worker);
        // Each round begins with the duplicates of those before it.
        let stop = (round + 1) * 37;
        acknowledged.extend(lines.by_ref().take(stop));
        worker.kill().unwrap();
        worker.wait().unwrap();
        acknowledged.extend(lines);
    }
    let claims = ids(&file, "SELECT event_id FROM processed_events ORDER BY 1");
    let effects = ids(&file, "SELECT id FROM ledger ORDER BY 1");
    assert_eq!(claims, effects, "claims and effects");
    assert!(acknowledged.len() >= 5 * 37, "{}", acknowledged.len());
    for said in &acknowledged {
        let id = said.strip_prefix("processed ").unwrap();
        assert!(claims.iter().any(|claim| claim == id), "{id} was lost");
    }
}

#[tokio::test]
async fn racing_processes_process_each_event_once() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("world.db");
    // They also migrate at once.
    drop(
        Connection::open(&file)
            .unwrap()
            .execute_batch("CREATE TABLE ledger (id TEXT)"),
    );
    let racers: Vec<Child> = (0..4).map(|_| child(&file, "race")).collect();
    for racer in racers {
        let output = racer.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    let effects = ids(&file, "SELECT id FROM ledger");
    assert_eq!(effects.len(), 200);
    assert_eq!(effects.iter().collect::<HashSet<_>>().len(), 200);
    assert_eq!(
        ids(&file, "SELECT event_id FROM processed_events").len(),
        200
    );
}
