//! R12: the connection is lost during COMMIT: `CommitUnknown`, and the next delivery is right.

use std::time::Duration;

use onceonly::{Claim, ClaimStore, Handler, StoreErrorKind};

use crate::proxy::Cut;
use crate::world::{PATIENT, World, claimed, event, kind, must};
use crate::{Harness, HarnessError};

async fn cut<H: Harness>(cut: Cut) {
    let world = World::<H>::new().await;
    let (proxy, store) = world.open_behind_a_proxy(2).await;
    let event = event("r12");
    let mut tx = claimed(&*store, &event).await;
    world.credit(&mut tx, "acme").await;
    proxy.arm(cut);
    let answer = kind(store.commit(tx).await, "a commit whose connection was cut");
    assert!(
        proxy.has_cut(),
        "no COMMIT came by, and the answer is {answer:?}"
    );
    assert_eq!(answer, StoreErrorKind::CommitUnknown);
    match must(store.claim(&event, PATIENT).await, "claiming after the cut") {
        Claim::Duplicate(_) => assert_eq!(cut, Cut::After, "the COMMIT never reached the server"),
        Claim::Fresh(mut tx) => {
            assert_eq!(cut, Cut::Before, "the COMMIT reached the server");
            world.expect(&event, 0, "acme", 0).await;
            world.credit(&mut tx, "acme").await;
            must(store.commit(tx).await, "committing after the cut");
        }
    }
    world.expect(&event, 1, "acme", 1).await;
    world.done().await;
}

pub(crate) async fn r12_commit_cut_before_it_arrived_is_unknown<H: Harness>() {
    cut::<H>(Cut::Before).await;
}

pub(crate) async fn r12_commit_cut_after_it_arrived_is_unknown<H: Harness>() {
    cut::<H>(Cut::After).await;
}

async fn handler_cut<H: Harness>(cut: Cut) {
    let world = World::<H>::new().await;
    let (proxy, store) = world.open_behind_a_proxy(4).await;
    let handler = Handler::new(store)
        .with_wait(PATIENT)
        .with_commit_limit(Duration::from_secs(2));
    let event = event("r12");
    let mut queued = None;
    let apply = async |tx: &mut _| {
        world.effect(tx, "acme").await?;
        let (world, handler, event) = (world.clone(), handler.clone(), event.clone());
        queued = Some(tokio::spawn(async move {
            let apply = async |tx: &mut _| world.effect(tx, "acme").await;
            handler.handle(&event, apply).await
        }));
        proxy.arm(cut);
        Ok::<_, HarnessError>(())
    };
    let error = match handler.handle(&event, apply).await {
        Ok(outcome) => panic!("a commit without an answer came out as {outcome:?}"),
        Err(error) => error,
    };
    assert!(
        proxy.has_cut(),
        "no COMMIT came by, and the answer is {error:?}"
    );
    let unknown = error.as_store().map(|error| error.kind());
    assert_eq!(unknown, Some(StoreErrorKind::CommitUnknown), "{error:?}");
    if let Some(queued) = queued {
        let queued = must(queued.await, "joining the delivery behind it");
        let queued = must(queued, "the delivery behind an unknown commit");
        assert_eq!(
            queued.is_duplicate(),
            cut != Cut::Before,
            "whether the delivery behind a commit that was cut ({cut:?}) is a duplicate"
        );
    }
    world.expect(&event, 1, "acme", 1).await;
    world.done().await;
}

pub(crate) async fn r12_delivery_cut_before_its_commit_arrived_is_unknown<H: Harness>() {
    handler_cut::<H>(Cut::Before).await;
}

pub(crate) async fn r12_delivery_cut_after_its_commit_arrived_is_unknown<H: Harness>() {
    handler_cut::<H>(Cut::After).await;
}

pub(crate) async fn r12_delivery_without_an_answer_to_its_commit_is_unknown<H: Harness>() {
    handler_cut::<H>(Cut::Silence).await;
}
