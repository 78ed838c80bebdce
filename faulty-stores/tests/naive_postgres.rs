//! A store written by hand on tokio-postgres, and the rules that it breaks on a real server.

#[path = "naive_postgres/harness.rs"]
mod harness;
#[path = "naive_postgres/store.rs"]
mod store;
#[path = "../../backend-postgres/tests/harness/mod.rs"]
mod world;

use std::collections::BTreeSet;
use std::time::Duration;

use harness::NaiveHarness;
use onceonly_conformance::{CaseOutcome, report};

/// What the unique index alone does not keep, each time.
const BROKEN: &str = include_str!("naive_postgres/broken.txt");

#[test]
fn a_store_written_by_hand_breaks_the_rules_that_drivers_hide() {
    let broken: BTreeSet<&str> = BROKEN.lines().collect();
    let rule = |case: &str| {
        broken
            .get(case.split('_').next().unwrap_or_default())
            .copied()
    };
    let results = report::<NaiveHarness>(|case| rule(case).is_some(), Duration::from_secs(40));
    for result in &results {
        println!("{result}");
    }
    let failed = results
        .iter()
        .filter(|result| matches!(result.outcome, CaseOutcome::Failed(_)));
    let seen: BTreeSet<&str> = failed.filter_map(|result| rule(result.name)).collect();
    assert_eq!(
        seen, broken,
        "the rules that were broken are not those of broken.txt"
    );
}
