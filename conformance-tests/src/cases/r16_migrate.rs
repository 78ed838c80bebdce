//! R16: migrations are idempotent, safe at once, and refuse what they don't understand.

use onceonly::{ClaimStore, StoreErrorKind};
use tokio::task::JoinSet;

use crate::Harness;
use crate::world::{PATIENT, World, event, kind, must};

pub(crate) async fn r16_migrating_twice_changes_nothing<H: Harness>() {
    let world = World::<H>::of(H::setup_empty().await);
    let store = world.open(2).await;
    must(world.migrate(&*store).await, "migrating");
    world.process(&store, &event("r16"), "acme").await;
    for _ in 0..2 {
        must(world.migrate(&*store).await, "migrating again");
    }
    world.expect(&event("r16"), 1, "acme", 1).await;
    world.done().await;
}

pub(crate) async fn r16_ten_instances_migrate_at_once<H: Harness>() {
    let world = World::<H>::of(H::setup_empty().await);
    let mut instances = JoinSet::new();
    for _ in 0..10 {
        let (world, store) = (world.clone(), world.open(1).await);
        instances.spawn(async move {
            must(world.migrate(&*store).await, "migrating beside nine others");
        });
    }
    instances.join_all().await;
    let store = world.open(2).await;
    world.process(&store, &event("r16"), "acme").await;
    world.expect(&event("r16"), 1, "acme", 1).await;
    world.done().await;
}

pub(crate) async fn r16_changed_migration_is_refused<H: Harness>() {
    let world = World::<H>::new().await;
    must(world.tamper().await, "changing a recorded migration");
    let store = world.open(1).await;
    let answer = kind(
        world.migrate(&*store).await,
        "migrating over a changed migration",
    );
    assert_eq!(answer, StoreErrorKind::Schema);
    world.done().await;
}

pub(crate) async fn r16_newer_compatible_schema_is_accepted<H: Harness>() {
    let world = World::<H>::new().await;
    must(world.advance_schema(true).await, "advancing the schema");
    let store = world.open(2).await;
    must(
        world.migrate(&*store).await,
        "migrating on a newer, compatible schema",
    );
    world.process(&store, &event("r16"), "acme").await;
    world.expect(&event("r16"), 1, "acme", 1).await;
    world.done().await;
}

pub(crate) async fn r16_incompatible_schema_is_refused<H: Harness>() {
    let world = World::<H>::new().await;
    must(world.advance_schema(false).await, "advancing the schema");
    let store = world.open(1).await;
    let answer = kind(
        world.migrate(&*store).await,
        "migrating on an incompatible schema",
    );
    assert_eq!(answer, StoreErrorKind::Schema);
    world.done().await;
}

pub(crate) async fn r16_missing_schema_names_the_fix<H: Harness>() {
    let world = World::<H>::of(H::setup_empty().await);
    let store = world.open(1).await;
    let error = match store.claim(&event("r16"), PATIENT).await {
        Ok(_) => panic!("a claim succeeded without a schema"),
        Err(error) => error,
    };
    assert_eq!(error.kind(), StoreErrorKind::Schema, "{error:?}");
    assert!(
        error.to_string().contains("migrate"),
        "the message names no fix: {error}"
    );
    must(world.migrate(&*store).await, "migrating");
    world.process(&store, &event("r16"), "acme").await;
    world.done().await;
}
