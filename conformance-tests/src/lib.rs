//! The conformance suite that every onceonly backend passes.

mod capabilities;
mod harness;

pub use capabilities::Capabilities;
pub use harness::{Escape, Harness, HarnessError, StoreOptions};
