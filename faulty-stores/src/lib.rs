//! Planted mistakes that the conformance suite must catch, each by name.
//!
//! A suite that a broken backend passes is worse than none. Each [`Fault`] is one small, plausible
//! mistake in an otherwise correct store; `tests/faults.rs` runs the suite against every one of them
//! and compares which cases catch it with the committed `matrix.txt`.

mod fault;
mod harness;
mod store;
mod transaction;

pub use fault::Fault;
pub use harness::FaultyHarness;
pub use store::FaultyStore;
pub use transaction::FaultyTx;
