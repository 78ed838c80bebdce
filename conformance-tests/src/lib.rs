//! The conformance suite that every onceonly backend passes, yours too.
//!
//! Implement [`Harness`] for your backend and write one line; you get one `#[test]` per case, each
//! named after the rule of the contract that it checks:
//!
//! ```ignore
//! // tests/conformance.rs
//! mod harness;
//!
//! onceonly_conformance::suite!(harness::MyHarness);
//! ```
//!
//! A store that is also [`ClaimRecords`](onceonly::ClaimRecords) adds
//! `onceonly_conformance::suite_records!(harness::MyHarness);`.
//!
//! Each case has a runtime, a world and a deadline of its own. What a backend can't do it declares
//! in its [`Capabilities`]; the cases that need it are skipped, and each skip is printed.
//! `docs/writing-a-backend.md` in the repository leads from an empty crate to a green suite.

mod approved;
mod capabilities;
#[allow(clippy::panic, reason = "a case fails by panicking, as a test does")]
mod cases;
mod drops;
mod harness;
mod macros;
mod proxy;
#[allow(clippy::panic, reason = "a case fails by panicking, as a test does")]
mod race;
#[allow(clippy::panic, reason = "a case fails by panicking, as a test does")]
mod random;
mod rules;
mod runner;
mod steps;
#[allow(clippy::panic, reason = "a case fails by panicking, as a test does")]
mod world;

pub use approved::approve;
pub use capabilities::Capabilities;
pub use harness::{Escape, Harness, HarnessError, StoreOptions};
pub use runner::{
    CaseOutcome, CaseResult, Skip, names, records_names, report, run, run_records, skips,
};
