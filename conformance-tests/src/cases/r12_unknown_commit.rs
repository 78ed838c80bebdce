//! R12: the connection is lost during COMMIT: `CommitUnknown`, and the next delivery is right.

use onceonly::{Claim, ClaimStore, StoreErrorKind};

use crate::proxy::{Cut, Proxy};
use crate::world::{PATIENT, World, claimed, event, kind, must};
use crate::{Harness, StoreOptions};

async fn cut<H: Harness>(cut: Cut) {
    let world = World::<H>::new().await;
    let server = must(
        world.server_addr().ok_or("no address"),
        "asking where the server is",
    );
    let proxy = must(Proxy::start(server).await, "starting a proxy");
    let mut options = StoreOptions::with_connections(2);
    options.via = Some(proxy.addr());
    let store = world.open_with(&options).await;
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
