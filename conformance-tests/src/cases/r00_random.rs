//! All rules at once, in random order.

use std::env;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use proptest::test_runner::{Config, RngSeed, TestRunner};
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::Harness;
use crate::random::{Stage, script};
use crate::world::{World, must};

/// Random deliveries of a few events, at least two at any time: committed, failed, panicked, dropped
/// in every phase, pruned. ONCEONLY_SEED repeats a run, ONCEONLY_CASES makes it longer.
pub(crate) async fn r0_random_interleavings<H: Harness>() {
    let world = World::<H>::new().await;
    let mut stage = Stage::new(world.clone()).await;
    let seed = variable("ONCEONLY_SEED").unwrap_or_else(now);
    let cases = u32::try_from(variable("ONCEONLY_CASES").unwrap_or(24)).unwrap_or(u32::MAX);
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

fn variable(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    Some(must(
        text.parse(),
        &format!("reading {name}, which must be a number"),
    ))
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |now| now.as_nanos() as u64)
}
