//! What the suite can't know: writers beside the store, leaked tables, and what a panic leaves.
#![allow(clippy::unwrap_used, reason = "a test states what it expects")]

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use onceonly::{Claim, ClaimStore, Event, HandleError, Handler, StoreErrorKind};
use onceonly_redb::{PROCESSED_EVENTS, RedbStore, RedbTx};
use redb::{Builder, Database};
use tempfile::TempDir;

const WAIT: Duration = Duration::from_millis(50);

struct World {
    _folder: TempDir,
    path: PathBuf,
}

impl World {
    fn new() -> (Self, Arc<Database>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("world.redb");
        let database = Arc::new(Database::create(&path).unwrap());
        let world = Self {
            _folder: folder,
            path,
        };
        (world, database)
    }
}

fn event() -> Event {
    Event::new("stripe", "evt_1").unwrap()
}

async fn is_processed(handler: &Handler<RedbStore>) -> bool {
    let apply = async |_: &mut RedbTx| Ok::<_, Infallible>(());
    !handler
        .handle(&event(), apply)
        .await
        .unwrap()
        .is_duplicate()
}

#[tokio::test]
async fn a_writer_beside_the_store_is_waited_for_and_given_up() {
    let (_world, database) = World::new();
    let store = RedbStore::new(Arc::clone(&database));
    let writer = database.begin_write().unwrap();
    for wait in [Duration::ZERO, WAIT] {
        let held = store.claim(&event(), wait).await.unwrap_err();
        assert_eq!(held.kind(), StoreErrorKind::InFlight);
    }
    let waiting = tokio::spawn({
        let store = store.clone();
        async move { store.claim(&event(), Duration::MAX).await }
    });
    while store.waiting() == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    writer.abort().unwrap();
    assert!(!waiting.await.unwrap().unwrap().is_duplicate());
}

#[tokio::test]
async fn a_leaked_claim_table_is_never_processed() {
    let (_world, database) = World::new();
    let handler = Handler::new(RedbStore::new(database));
    let event = event();
    let leaking = handler.handle(&event, async |tx| {
        std::mem::forget(tx.open_table(PROCESSED_EVENTS)?);
        Ok::<_, redb::TableError>(())
    });
    let doomed = leaking.await.unwrap_err();
    assert!(
        matches!(&doomed, HandleError::Store(error) if error.kind() == StoreErrorKind::TransactionDoomed)
    );
}

#[tokio::test]
async fn a_panic_in_apply_leaves_nothing_to_repair() {
    let (world, database) = World::new();
    let handler = Handler::new(RedbStore::new(database));
    let panicking = tokio::spawn({
        let handler = handler.clone();
        async move {
            let apply = async |_: &mut RedbTx| -> Result<(), Infallible> {
                std::panic::resume_unwind(Box::new("apply"))
            };
            handler.handle(&event(), apply).await
        }
    });
    assert!(panicking.await.unwrap_err().is_panic());
    assert!(is_processed(&handler).await);
    drop(handler);
    let mut builder = Builder::new();
    builder.set_repair_callback(|session| session.abort());
    builder.open(&world.path).unwrap();
}

#[test]
fn a_transaction_outlives_its_runtime_and_rolls_back() {
    let (_world, database) = World::new();
    let store = RedbStore::new(Arc::clone(&database));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let claim = runtime.block_on(store.claim(&event(), WAIT)).unwrap();
    drop(runtime);
    assert!(matches!(claim, Claim::Fresh(_)));
    drop(claim);
    database.try_begin_write().unwrap().abort().unwrap();
}
