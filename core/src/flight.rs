//! One delivery per key at a time inside the process: the others queue without a connection.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::{Event, EventId, Source};

type Key = (Source, EventId);

/// The keys that are being delivered in this process right now.
///
/// An optimisation over the unique index and never instead of it: whoever gets the turn asks the
/// database. Only what the database confirmed is shared with those who queue.
#[derive(Default)]
pub(crate) struct Flights {
    queues: Mutex<HashMap<Key, Queue>>,
}

struct Queue {
    turn: Arc<Turn>,
    members: usize,
}

struct Turn {
    /// One permit, first come first served.
    permit: Arc<Semaphore>,
    /// A committed claim of the key was seen while this queue stood.
    settled: AtomicBool,
}

impl Flights {
    /// Takes a place in the queue of the event's key. Dropping the place leaves the queue.
    pub(crate) fn join(self: &Arc<Self>, event: &Event) -> Place {
        let key = (event.source().clone(), event.id().clone());
        let mut queues = self.lock();
        let queue = queues.entry(key.clone()).or_insert_with(|| Queue {
            turn: Arc::new(Turn {
                permit: Arc::new(Semaphore::new(1)),
                settled: AtomicBool::new(false),
            }),
            members: 0,
        });
        queue.members += 1;
        Place {
            flights: Arc::clone(self),
            key,
            turn: Arc::clone(&queue.turn),
        }
    }

    /// How many keys have a queue.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Queue>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Flights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flights")
            .field("keys", &self.len())
            .finish()
    }
}

/// A place in the queue of one key.
pub(crate) struct Place {
    flights: Arc<Flights>,
    key: Key,
    turn: Arc<Turn>,
}

/// What waiting in the queue came to.
pub(crate) enum Waited {
    /// It is this delivery's turn to ask the database.
    Lead(Lead),
    /// A delivery ahead saw a committed claim.
    Settled,
    /// The deadline passed first.
    Late,
}

impl Place {
    /// Waits for the turn until `deadline`; `None` waits without a limit.
    pub(crate) async fn wait(self, deadline: Option<Instant>) -> Waited {
        let acquire = Arc::clone(&self.turn.permit).acquire_owned();
        let acquired = match deadline {
            Some(deadline) => timeout_at(deadline, acquire).await,
            None => Ok(acquire.await),
        };
        match acquired {
            _ if self.turn.settled.load(Ordering::Acquire) => Waited::Settled,
            Ok(Ok(permit)) => Waited::Lead(Lead {
                _permit: permit,
                place: self,
            }),
            Ok(Err(_)) | Err(_) => Waited::Late,
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut queues = self.flights.lock();
        if let Some(queue) = queues.get_mut(&self.key)
            && Arc::ptr_eq(&queue.turn, &self.turn)
        {
            queue.members -= 1;
            if queue.members == 0 {
                queues.remove(&self.key);
            }
        }
    }
}

/// The turn of one delivery. Dropping it passes the turn to the next in the queue.
pub(crate) struct Lead {
    _permit: OwnedSemaphorePermit,
    place: Place,
}

impl Lead {
    /// Tells those already queued that a committed claim exists.
    ///
    /// Later arrivals start a new queue and ask the database, so a claim that is pruned or forgotten
    /// in the meantime can't be answered from memory.
    pub(crate) fn settle(self) {
        let mut queues = self.place.flights.lock();
        if queues
            .get(&self.place.key)
            .is_some_and(|queue| Arc::ptr_eq(&queue.turn, &self.place.turn))
        {
            queues.remove(&self.place.key);
        }
        self.place.turn.settled.store(true, Ordering::Release);
        drop(queues);
    }
}

impl fmt::Debug for Lead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lead").finish_non_exhaustive()
    }
}
