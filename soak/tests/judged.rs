#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test states what it expects"
)]
//! Small runs on SQLite: the judge finds nothing wrong, and every wrong that is done on purpose.

use std::process::{Command, Output};

/// Set it to repeat a run.
const SEED: &str = "ONCEONLY_SOAK_SEED";

/// Runs 2,000 deliveries of 600 events and returns what was printed.
fn soak(more: &[&str]) -> (Output, String) {
    let seed = std::env::var(SEED).unwrap_or_else(|_| "20261201".to_owned());
    let directory = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_onceonly-soak"))
        .current_dir(directory.path())
        .args(["run", "--database=sqlite", "--events=600"])
        .args(["--deliveries=2000", "--seed", &seed])
        .args(more)
        .output()
        .unwrap();
    let printed = [&output.stdout[..], &output.stderr].concat();
    let printed = String::from_utf8(printed).unwrap();
    println!("{SEED}={seed}\n{printed}");
    (output, printed)
}

fn wrong(printed: &str) -> u32 {
    let line = printed
        .lines()
        .find_map(|line| line.strip_prefix("wrong: "));
    line.expect("the judge counts what is wrong")
        .parse()
        .unwrap()
}

#[test]
fn nothing_is_wrong() {
    let (output, printed) = soak(&[]);
    assert_eq!(wrong(&printed), 0);
    assert!(output.status.success());
}

#[test]
fn every_sabotage_is_found() {
    for sabotage in [
        "--sabotage",
        "--sabotage=double-effect",
        "--sabotage=outside-effect",
        "--sabotage=missing-effect",
        "--sabotage=forgotten-claim",
        "--sabotage=false-duplicate",
    ] {
        let (output, printed) = soak(&[sabotage]);
        assert!(wrong(&printed) > 0, "{sabotage}");
        assert!(!output.status.success(), "{sabotage}");
    }
}

#[test]
fn fewer_deliveries_than_asked_fail_the_judge() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let program = env!("CARGO_BIN_EXE_onceonly-soak");
    let place = ["--database=sqlite", "--events=600"];
    let child = |name: &str, deliveries: &str| {
        let mut child = Command::new(program);
        child.arg(name).args(place).arg(deliveries);
        child.arg("--journal").arg(path("journal.txt"));
        child.arg("--file").arg(path("soak.db"));
        child.status().unwrap()
    };
    assert!(child("deliver", "--deliveries=2000").success());
    assert!(child("judge", "--deliveries=2000").success());
    assert!(!child("judge", "--deliveries=2001").success());
}
