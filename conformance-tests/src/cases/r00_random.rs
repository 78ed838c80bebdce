//! All rules at once, in random order.

use std::time::Duration;

use proptest::test_runner::{Config, RngSeed, TestRunner};
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::Harness;
use crate::random::{Stage, cases, script, seed};
use crate::world::{World, must};

/// Random deliveries of a few events, at least two at any time: committed, failed, panicked, dropped
/// in every phase, pruned. ONCEONLY_SEED repeats a run, ONCEONLY_CASES makes it longer.
pub(crate) async fn r0_random_interleavings<H: Harness>() {
    let world = World::<H>::new().await;
    let mut stage = Stage::new(world.clone()).await;
    let seed = seed();
    let cases = cases();
    println!("r0_random_interleavings: ONCEONLY_SEED={seed} ONCEONLY_CASES={cases}");
    let config = Config {
        cases,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        max_shrink_iters: 64,
        max_shrink_time: 60_000,
        ..Config::default()
    };
    let handle = Handle::current();
    let played = tokio::task::spawn_blocking(move || {
        let stage_cell = std::cell::RefCell::new(&mut stage);
        let result = TestRunner::new(config).run(&script(), |script| {
            let mut stage = stage_cell.borrow_mut();
            let played = handle.block_on(timeout(Duration::from_secs(120), stage.play(&script)));
            must(played, "playing one script within 120 s");
            Ok(())
        });
        if let Err(failed) = result {
            panic!("ONCEONLY_SEED={seed} repeats it: {failed}");
        }
        stage
    });
    let stage = match played.await {
        Ok(stage) => stage,
        Err(failed) => std::panic::resume_unwind(failed.into_panic()),
    };
    stage.totals.check();
    if H::capabilities().single_primary {
        stage.coverage.require(cases.div_ceil(8));
    }
    println!("r0_random_interleavings: {}", stage.coverage);
    drop(stage);
    world.done().await;
}
