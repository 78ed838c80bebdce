//! The way to the blocking threads.

use onceonly::{StoreError, StoreErrorKind};
use tokio::task::spawn_blocking;

/// Runs `work` on a blocking thread, where it goes on when this future is dropped: it owns all that
/// it needs, and what it returns cleans up by its own `Drop` when nobody takes it.
///
/// `lost` says what is true when the thread panicked or the runtime shut down first.
pub(crate) async fn blocking<T, W>(lost: StoreErrorKind, work: W) -> Result<T, StoreError>
where
    T: Send + 'static,
    W: FnOnce() -> Result<T, StoreError> + Send + 'static,
{
    spawn_blocking(work).await.unwrap_or_else(|error| {
        Err(StoreError::new(lost, "the blocking task did not end").with_source(error))
    })
}
