//! A transactional store in memory: for unit tests, and the template for authors of backends.

mod state;
mod store;
mod transaction;

pub use store::MemoryStore;
pub use transaction::{MemorySavepoint, MemoryTx};
