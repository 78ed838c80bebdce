//! A whole run on an SQLite file, with our own bodies, and one that is sabotaged.
#![allow(clippy::unwrap_used, reason = "a test states what it expects")]

use std::process::{Command, Output};

fn deliver(arguments: &[&str]) -> Output {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/bodies");
    Command::new(env!("CARGO_BIN_EXE_deliver"))
        .args(["--database", "sqlite", "--folder", folder])
        .args(arguments)
        .output()
        .unwrap()
}

#[test]
fn every_event_is_credited_once() {
    let output = deliver(&["--fail-first", "100"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(text.contains("processed 7, duplicates 14"), "{text}");
    assert!(text.contains("wrong 0"), "{text}");
}

#[test]
fn lost_and_doubled_credits_are_found() {
    let output = deliver(&["--sabotage"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success(), "{text}");
    assert!(text.contains("wrong 2"), "{text}");
}

#[test]
fn a_folder_without_bodies_is_an_error() {
    let empty = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_deliver"))
        .arg("--folder")
        .arg(empty.path())
        .output()
        .unwrap();
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("no bodies in"), "{text}");
}
