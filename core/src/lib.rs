//! Process each webhook event exactly once.
//!
//! Providers deliver *at least once*: the same event arrives twice, sometimes 400 ms apart, and a
//! customer is credited twice. onceonly makes the effect happen once: in **one** database
//! transaction it inserts the event's id under a unique key (the claim), runs your side effects,
//! and commits. Both are committed together or not at all.
//!
//! This crate holds the contract and the [`Handler`]; it knows no database. Add one of
//! `onceonly-postgres`, `onceonly-mysql` or `onceonly-sqlite` for that, or use [`MemoryStore`] in
//! unit tests:
//!
//! ```
//! use onceonly::{Event, Handler, MemoryStore, Outcome};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
//! let handler = Handler::new(MemoryStore::new());
//! // The provider's stable id, never a hash of the payload.
//! let event = Event::new("stripe", "evt_1")?.with_type("invoice.paid")?;
//!
//! let outcome = handler
//!     .handle(&event, async |tx| {
//!         tx.put("credits/acme", "10");
//!         Ok::<_, std::io::Error>("credited")
//!     })
//!     .await?;
//! assert_eq!(outcome, Outcome::Processed("credited"));
//!
//! let again = handler.handle(&event, async |_| Ok::<_, std::io::Error>("credited")).await?;
//! assert!(again.is_duplicate());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What to answer the provider
//!
//! [`Outcome::Processed`] and [`Outcome::Duplicate`] are both HTTP 200. Every error makes the
//! provider retry: 503 with `Retry-After` where [`StoreError::is_retryable`] says so, 400 for an
//! [`InvalidKey`], else 500. Never answer 200 for an event in flight: its first delivery may still
//! roll back.
//!
//! # Writing a backend
//!
//! Implement [`ClaimStore`] and run the suite of `onceonly-conformance` against it.

mod claim;
mod error;
mod event;
mod flight;
mod guard;
mod handle_error;
mod handler;
mod identity;
mod invalid_key;
mod limits;
mod memory;
mod outcome;
mod pruner;
mod report;
mod store;

pub use claim::{Claim, Duplicate};
pub use error::{ClaimFate, StoreError, StoreErrorKind};
pub use event::Event;
pub use guard::ClaimGuard;
pub use handle_error::HandleError;
pub use handler::Handler;
pub use identity::{EventId, EventType, MAX_BYTES, Source};
pub use invalid_key::{InvalidKey, InvalidKeyKind, KeyPart};
pub use memory::{MemorySavepoint, MemoryStore, MemoryTx};
pub use outcome::Outcome;
pub use pruner::Pruner;
pub use store::{ClaimRecords, ClaimStore, Forget};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
