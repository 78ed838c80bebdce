//! A borrowed connection that can't go back to its pool by accident.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{ClientWrapper, Object};
use futures_util::FutureExt;
use tokio::runtime::Handle;

use crate::connector::Canceller;
use crate::unwind::{End, GRACE, unwind};

/// A connection out of a pool. Only [`give_back`](Self::give_back) returns it there; dropping it
/// does what [`OnDrop`] says.
pub(crate) struct Connection {
    object: Option<Object>,
    pub(crate) on_drop: OnDrop,
    pub(crate) canceller: Arc<Canceller>,
    pub(crate) runtime: Handle,
}

/// What dropping a connection does. It is set before each await, to what is right if the future is
/// dropped there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnDrop {
    /// Close it, without asking the server anything.
    Close,
    /// A COMMIT is under way, maybe behind a statement that apply gave up: cancel what is still
    /// running after a moment, and close.
    GiveUp,
    /// A transaction may be open: roll it back, and pool the connection once that is confirmed.
    RollBack,
    /// A statement is under way that may wait for a lock: cancel it at once, and close.
    Cancel,
}

impl Connection {
    pub(crate) const fn new(object: Object, canceller: Arc<Canceller>, runtime: Handle) -> Self {
        Self {
            object: Some(object),
            on_drop: OnDrop::Close,
            canceller,
            runtime,
        }
    }

    /// Whether it served somebody before, so that the server may have closed it in the meantime.
    pub(crate) fn is_reused(&self) -> bool {
        self.object
            .as_ref()
            .is_some_and(|object| Object::metrics(object).recycle_count > 0)
    }

    /// Returns it to the pool. Nothing may be open or under way on it.
    pub(crate) fn give_back(mut self) {
        drop(self.object.take());
    }

    /// Sends ROLLBACK without awaiting the answer: whatever is sent next, by us or by the next
    /// borrower, queues up behind it. Only when the last statement was answered, so that nothing
    /// can hold it up.
    pub(crate) fn send_rollback(&self) {
        let _sent = self.batch_execute("ROLLBACK").now_or_never();
    }

    fn take(&mut self) -> Option<Self> {
        let object = self.object.take()?;
        Some(Self::new(
            object,
            Arc::clone(&self.canceller),
            self.runtime.clone(),
        ))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let (grace, end) = match self.on_drop {
            OnDrop::Close => {
                // Aborts the driver's task, which closes the socket; the pool's slot is free.
                if let Some(object) = self.object.take() {
                    drop(Object::take(object));
                }
                return;
            }
            OnDrop::GiveUp => (GRACE, End::Close),
            OnDrop::RollBack => (GRACE, End::RollBack),
            OnDrop::Cancel => (Duration::ZERO, End::RollBack),
        };
        if let Some(connection) = self.take() {
            unwind(connection, grace, end);
        }
    }
}

impl Deref for Connection {
    type Target = ClientWrapper;

    fn deref(&self) -> &ClientWrapper {
        match &self.object {
            Some(object) => object,
            None => unreachable!("taken only by drop and by methods that consume the connection"),
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("on_drop", &self.on_drop)
            .finish_non_exhaustive()
    }
}
