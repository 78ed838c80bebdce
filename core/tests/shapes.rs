//! The ways in which teams call a handler; each must compile, and its future must be `Send`.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test states what it expects"
)]

use std::convert::Infallible;
use std::sync::Arc;

use onceonly::{Claim, ClaimStore, Event, Handler, MemoryStore, MemoryTx, Outcome};

type DynStore = Arc<dyn ClaimStore<Tx = MemoryTx>>;

fn event(id: &str) -> Event {
    Event::new("shapes", id).unwrap()
}

async fn credit(tx: &mut MemoryTx, account: &str, amount: &mut u32) -> Result<u32, Infallible> {
    tokio::task::yield_now().await;
    tx.put(account, amount.to_string());
    *amount += 1;
    Ok(*amount)
}

async fn generic<S: ClaimStore>(handler: &Handler<S>, event: &Event) -> bool {
    handler
        .handle(event, async |_tx| {
            tokio::task::yield_now().await;
            Ok::<_, Infallible>(())
        })
        .await
        .unwrap()
        .is_duplicate()
}

struct Receiver<S: ClaimStore> {
    handler: Handler<S>,
    account: String,
}

impl Receiver<MemoryStore> {
    async fn receive(self: Arc<Self>, event: Event) -> Outcome<()> {
        self.handler
            .handle(&event, async |tx| {
                tx.put(self.account.as_str(), "1");
                Ok::<_, Infallible>(())
            })
            .await
            .unwrap()
    }
}

async fn route(
    axum::extract::State(handler): axum::extract::State<Handler<MemoryStore>>,
    id: String,
) -> &'static str {
    let event = event(&id);
    let mut amount = 1;
    match handler
        .handle(&event, async |tx| credit(tx, "acme", &mut amount).await)
        .await
    {
        Ok(_) => "ok",
        Err(_) => "retry",
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handle_works_inside_a_spawned_task_with_borrowed_locals() {
    let handler = Handler::new(MemoryStore::new());
    let outcome = tokio::spawn(async move {
        let (event, account, mut amount) = (event("spawned"), String::from("acme"), 7);
        let outcome = handler.handle(&event, async |tx| credit(tx, &account, &mut amount).await);
        outcome.await.map(|outcome| (outcome, amount))
    })
    .await
    .unwrap()
    .unwrap();
    assert_eq!(outcome, (Outcome::Processed(8), 8));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handle_works_with_a_generic_store() {
    let handler = Handler::new(MemoryStore::new());
    let task = tokio::spawn(async move {
        let event = event("generic");
        (
            generic(&handler, &event).await,
            generic(&handler, &event).await,
        )
    });
    assert_eq!(task.await.unwrap(), (false, true));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handle_works_with_a_store_behind_dyn() {
    let store: DynStore = Arc::new(MemoryStore::new());
    let handler = Handler::new(store);
    let task = tokio::spawn(async move {
        let event = event("dyn");
        let mut amount = 0;
        handler
            .handle(&event, async |tx| credit(tx, "acme", &mut amount).await)
            .await
            .unwrap()
    });
    assert_eq!(task.await.unwrap(), Outcome::Processed(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handle_works_in_a_method_of_an_arc() {
    let receiver = Arc::new(Receiver {
        handler: Handler::new(MemoryStore::new()),
        account: "a".into(),
    });
    let task = tokio::spawn(Arc::clone(&receiver).receive(event("arc")));
    assert_eq!(task.await.unwrap(), Outcome::Processed(()));
    assert_eq!(receiver.handler.store().get("a"), Some(b"1".to_vec()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handle_retrying_works_with_borrowed_locals() {
    let handler = Handler::new(MemoryStore::new());
    let task = tokio::spawn(async move {
        let (event, account) = (event("retrying"), String::from("acme"));
        let apply = async |tx: &mut MemoryTx| {
            tokio::task::yield_now().await;
            tx.put(account.as_str(), "1");
            Ok::<_, Infallible>(())
        };
        handler.handle_retrying(&event, apply).await.unwrap()
    });
    assert_eq!(task.await.unwrap(), Outcome::Processed(()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn begin_works_inside_a_spawned_task() {
    let handler = Handler::new(MemoryStore::new());
    let task = tokio::spawn(async move {
        let Claim::Fresh(mut claim) = handler.begin(&event("guard")).await? else {
            return Ok(None);
        };
        let mut amount = 1;
        credit(&mut claim, "acme", &mut amount).await.unwrap();
        claim.commit().await?;
        Ok::<_, onceonly::StoreError>(handler.store().get("acme"))
    });
    assert_eq!(task.await.unwrap().unwrap(), Some(b"1".to_vec()));
}

#[test]
fn handle_works_in_an_axum_handler() {
    let router: axum::Router = axum::Router::new()
        .route("/", axum::routing::post(route))
        .with_state(Handler::new(MemoryStore::new()));
    assert!(router.has_routes());
}
