//! What is delivered when, and what is planted in it: decided by the seed.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng, SeedableRng as _};

use crate::arguments::Size;
use crate::delivery::{Cut, Delivery, Phase, Plan};

/// How many handlers, each with a store and a pool of its own, as two processes would have.
pub(crate) const HANDLERS: usize = 2;

/// Every event at least once, the rest at random, most deliveries of an event close together.
pub(crate) fn schedule(size: Size, seed: u64) -> Vec<Delivery> {
    let mut random = StdRng::seed_from_u64(seed);
    let every = 0..size.events;
    let more = size.deliveries.saturating_sub(size.events);
    let mut events: Vec<u32> = every.collect();
    events.extend((0..more).map(|_| random.random_range(0..size.events.max(1))));
    let mut placed: Vec<(u64, u32)> = events
        .into_iter()
        .map(|event| (place(event, size.events, &mut random), event))
        .collect();
    placed.sort_unstable();
    placed
        .into_iter()
        .map(|(_, event)| Delivery {
            event,
            handler: random.random_range(0..HANDLERS),
            wait: wait(&mut random),
            plan: plan(&mut random),
        })
        .collect()
}

/// Three of four come within a few events of the first, so that they race; the others come late.
fn place(event: u32, events: u32, random: &mut StdRng) -> u64 {
    const APART: u64 = 1_000;
    let first = u64::from(event) * APART;
    let span = if random.random_bool(0.75) {
        2
    } else {
        u64::from(events)
    };
    first + random.random_range(0..span.max(1) * APART)
}

fn wait(random: &mut StdRng) -> Duration {
    match random.random_range(0..10) {
        0 => Duration::ZERO,
        1 => Duration::from_millis(random.random_range(1..20)),
        _ => Duration::from_secs(2),
    }
}

fn plan(random: &mut StdRng) -> Plan {
    match random.random_range(0..100) {
        0..40 => Plan::Plain,
        40..57 => Plan::Error,
        57..74 => Plan::Panic,
        74..95 => Plan::Drop(cut(random)),
        95..98 => Plan::Timeout(statement(random)),
        _ => Plan::HiddenTimeout(statement(random)),
    }
}

fn cut(random: &mut StdRng) -> Cut {
    Cut {
        phase: Phase::ALL.choose(random).copied().unwrap_or(Phase::Claim),
        poll: random.random_range(1..=3),
        later: match random.random_range(0..4) {
            0 => Duration::from_millis(random.random_range(1..4)),
            _ => Duration::ZERO,
        },
    }
}

/// Longer and shorter than the time that a store gives a running statement before it cancels.
fn statement(random: &mut StdRng) -> Duration {
    Duration::from_millis(*[20, 50, 400].choose(random).unwrap_or(&50))
}
