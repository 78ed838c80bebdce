//! Process each webhook event exactly once.

mod claim;
mod error;
mod event;
mod identity;
mod invalid_key;
mod store;

pub use claim::{Claim, Duplicate};
pub use error::{ClaimFate, StoreError, StoreErrorKind};
pub use event::Event;
pub use identity::{EventId, EventType, MAX_BYTES, Source};
pub use invalid_key::{InvalidKey, InvalidKeyKind, KeyPart};
pub use store::{ClaimRecords, ClaimStore, Forget};
