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
use onceonly_conformance::{CaseOutcome, approve, report};

/// The unique index alone keeps R1 to R3 and R7 to R9. What fails is in the approved file.
#[test]
fn a_store_written_by_hand_breaks_the_rules_that_drivers_hide() {
    let results = report::<NaiveHarness>(|case| !case.starts_with("r0_"), Duration::from_secs(40));
    for result in &results {
        println!("{result}");
    }
    let failed = results
        .iter()
        .filter(|result| matches!(result.outcome, CaseOutcome::Failed(_)));
    let rules: BTreeSet<&str> = failed
        .filter_map(|result| result.name.split('_').next())
        .collect();
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/naive_postgres/broken.txt"
    );
    approve(file, &rules.into_iter().collect::<Vec<_>>());
}
