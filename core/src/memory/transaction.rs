//! An open transaction: the claim's row and the writes that become visible with it.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use tokio::sync::Semaphore;

use super::state::{Key, Shared};
use crate::{StoreError, StoreErrorKind};

/// An open transaction of a [`MemoryStore`](super::MemoryStore): a small key-value map of its own
/// that becomes visible at the commit. Dropping it rolls back.
///
/// Reads see what is committed and this transaction's own writes. The commit fails with
/// [`Conflict`](StoreErrorKind::Conflict) when a key that was read or written here was committed by
/// another transaction in between, as under serializable isolation.
///
/// ```
/// use onceonly::{Event, Handler, MemoryStore};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let store = MemoryStore::new();
/// let handler = Handler::new(store.clone());
/// let outcome = handler
///     .handle(&Event::new("stripe", "evt_1")?, async |tx| {
///         tx.put("credits", "10");
///         Ok::<_, std::convert::Infallible>(tx.get("credits"))
///     })
///     .await?;
/// assert_eq!(outcome.processed(), Some(Some(b"10".to_vec())));
/// assert_eq!(store.get("credits"), Some(b"10".to_vec()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a transaction that is dropped is rolled back"]
pub struct MemoryTx {
    shared: Arc<Shared>,
    key: Key,
    /// Which open claim of the key is this transaction's.
    ended: Arc<Semaphore>,
    /// The version of each key when this transaction first touched it.
    seen: HashMap<String, u64>,
    writes: HashMap<String, Option<Arc<[u8]>>>,
}

impl MemoryTx {
    pub(super) fn new(shared: Arc<Shared>, key: Key, ended: Arc<Semaphore>) -> Self {
        Self {
            ended,
            shared,
            key,
            seen: HashMap::new(),
            writes: HashMap::new(),
        }
    }

    /// Writes a value. Others see it after the commit.
    pub fn put(&mut self, key: impl Into<String>, value: impl Into<Vec<u8>>) {
        self.write(key.into(), Some(value.into().into()));
    }

    /// Removes a value. Others see it gone after the commit.
    pub fn remove(&mut self, key: impl Into<String>) {
        self.write(key.into(), None);
    }

    /// Reads this transaction's own write, else the committed value.
    #[must_use]
    pub fn get(&mut self, key: &str) -> Option<Vec<u8>> {
        if let Some(written) = self.writes.get(key) {
            return written.as_deref().map(<[u8]>::to_vec);
        }
        let cell = self
            .shared
            .lock()
            .data
            .get(key)
            .cloned()
            .unwrap_or_default();
        self.seen.entry(key.to_owned()).or_insert(cell.version);
        cell.value.as_deref().map(<[u8]>::to_vec)
    }

    /// Remembers the writes so far.
    #[must_use]
    pub fn savepoint(&self) -> MemorySavepoint {
        MemorySavepoint {
            writes: self.writes.clone(),
        }
    }

    /// Undoes the writes since `savepoint`, which must be of this transaction.
    pub fn rollback_to(&mut self, savepoint: MemorySavepoint) {
        self.writes = savepoint.writes;
    }

    fn write(&mut self, key: String, value: Option<Arc<[u8]>>) {
        if !self.seen.contains_key(&key) {
            let version = self
                .shared
                .lock()
                .data
                .get(&key)
                .map_or(0, |cell| cell.version);
            self.seen.insert(key.clone(), version);
        }
        self.writes.insert(key, value);
    }

    /// Claim and writes become visible together, under one lock.
    pub(super) fn commit(self) -> Result<(), StoreError> {
        let mut tables = self.shared.lock();
        let overtaken = self
            .seen
            .iter()
            .any(|(key, version)| tables.data.get(key).map_or(0, |cell| cell.version) != *version);
        if overtaken {
            drop(tables);
            return Err(StoreError::new(
                StoreErrorKind::Conflict,
                "another transaction committed a key that this one read or wrote",
            ));
        }
        for (key, value) in &self.writes {
            let cell = tables.data.entry(key.clone()).or_default();
            cell.version += 1;
            cell.value.clone_from(value);
        }
        tables.end(&self.key, &self.ended, true);
        drop(tables);
        Ok(())
    }
}

impl Drop for MemoryTx {
    fn drop(&mut self) {
        // After a commit the row is no longer open, and this finds nothing to undo.
        self.shared.lock().end(&self.key, &self.ended, false);
    }
}

impl fmt::Debug for MemoryTx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryTx")
            .field("writes", &self.writes.len())
            .finish_non_exhaustive()
    }
}

/// A point in a [`MemoryTx`] to return to.
#[derive(Debug, Clone)]
pub struct MemorySavepoint {
    writes: HashMap<String, Option<Arc<[u8]>>>,
}
