//! The suite against redb files that two processes may write to.
#![allow(clippy::unwrap_used, reason = "a test states what it expects")]

mod harness;

onceonly_conformance::suite!(harness::RedbHarness);
onceonly_conformance::suite_records!(harness::RedbHarness);
onceonly_conformance::approved_skips!(harness::RedbHarness, "skips.txt");
