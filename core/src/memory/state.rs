//! The committed data, the open claims, and the rules by which one becomes the other.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::{Event, EventId, Source};

pub(super) type Key = (Source, EventId);

pub(super) fn key(event: &Event) -> Key {
    (event.source().clone(), event.id().clone())
}

/// A row of the claim table.
pub(super) enum Row {
    /// Inserted by a transaction that is open. Closing the semaphore wakes all who wait for it.
    Open(Arc<Semaphore>),
    Committed(Committed),
}

pub(super) struct Committed {
    received: Instant,
    aged: Duration,
}

impl Committed {
    fn age(&self) -> Duration {
        self.received.elapsed().saturating_add(self.aged)
    }
}

/// A committed value and how often it was written.
#[derive(Clone, Default)]
pub(super) struct Cell {
    pub(super) value: Option<Arc<[u8]>>,
    pub(super) version: u64,
}

#[derive(Default)]
pub(super) struct Tables {
    pub(super) claims: HashMap<Key, Row>,
    pub(super) data: HashMap<String, Cell>,
    pub(super) waiting: usize,
}

/// What an insert into the claim table found.
pub(super) enum Insert {
    Inserted(Arc<Semaphore>),
    Held(Arc<Semaphore>),
    Duplicate,
}

impl Tables {
    pub(super) fn insert(&mut self, key: &Key) -> Insert {
        match self.claims.get(key) {
            Some(Row::Committed(_)) => Insert::Duplicate,
            Some(Row::Open(ended)) => Insert::Held(Arc::clone(ended)),
            None => {
                let ended = Arc::new(Semaphore::new(0));
                self.claims
                    .insert(key.clone(), Row::Open(Arc::clone(&ended)));
                Insert::Inserted(ended)
            }
        }
    }

    /// Ends the claim of `key` if it is still the open one that `ended` belongs to, and wakes those
    /// who wait for it.
    pub(super) fn end(&mut self, key: &Key, ended: &Arc<Semaphore>, commit: bool) {
        if !matches!(self.claims.get(key), Some(Row::Open(open)) if Arc::ptr_eq(open, ended)) {
            return;
        }
        if commit {
            let committed = Committed {
                received: Instant::now(),
                aged: Duration::ZERO,
            };
            self.claims.insert(key.clone(), Row::Committed(committed));
        } else {
            self.claims.remove(key);
        }
        ended.close();
    }

    pub(super) fn is_committed(&self, key: &Key) -> bool {
        matches!(self.claims.get(key), Some(Row::Committed(_)))
    }

    pub(super) fn age(&mut self, key: &Key, by: Duration) {
        if let Some(Row::Committed(committed)) = self.claims.get_mut(key) {
            committed.aged = committed.aged.saturating_add(by);
        }
    }

    pub(super) fn prune(&mut self, older_than: Duration, limit: usize) -> usize {
        let old: Vec<Key> = self
            .claims
            .iter()
            .filter(|(_, row)| matches!(row, Row::Committed(row) if row.age() > older_than))
            .map(|(key, _)| key.clone())
            .take(limit)
            .collect();
        for key in &old {
            self.claims.remove(key);
        }
        old.len()
    }
}

#[derive(Default)]
pub(super) struct Shared {
    tables: Mutex<Tables>,
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts one waiting claim for as long as it lives, also when its future is dropped.
pub(super) struct Waiting(Arc<Shared>);

impl Waiting {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        shared.lock().waiting += 1;
        Self(Arc::clone(shared))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.lock().waiting -= 1;
    }
}
