//! Stops a statement whose future was dropped.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, InterruptHandle};

type Shared = Arc<Mutex<Option<InterruptHandle>>>;

/// Interrupts what runs when it is dropped, unless it was disarmed.
pub(crate) struct Interrupt {
    handle: Shared,
    armed: bool,
}

/// Held by the work. Once it is dropped, an interrupt has no effect: it must not reach the
/// connection's next transaction.
pub(crate) struct Running(Shared);

impl Interrupt {
    pub(crate) fn new(connection: &Connection) -> (Self, Running) {
        let handle = Arc::new(Mutex::new(Some(connection.get_interrupt_handle())));
        let running = Running(Arc::clone(&handle));
        (
            Self {
                handle,
                armed: true,
            },
            running,
        )
    }

    pub(crate) fn disarm(mut self) {
        self.armed = false;
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        if self.armed
            && let Some(handle) = &*lock(&self.handle)
        {
            handle.interrupt();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        *lock(&self.0) = None;
    }
}

fn lock(handle: &Shared) -> MutexGuard<'_, Option<InterruptHandle>> {
    handle.lock().unwrap_or_else(PoisonError::into_inner)
}
