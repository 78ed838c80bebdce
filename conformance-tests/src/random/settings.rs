//! What the environment says about random cases.

use std::env;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::world::must;

/// ONCEONLY_SEED, or another one for each run.
pub(crate) fn seed() -> u64 {
    variable("ONCEONLY_SEED").unwrap_or_else(now)
}

/// ONCEONLY_CASES: how many random runs one case makes.
pub(crate) fn cases() -> u32 {
    u32::try_from(variable("ONCEONLY_CASES").unwrap_or(24)).unwrap_or(u32::MAX)
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
