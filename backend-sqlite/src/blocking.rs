//! SQLite's calls block, so they run on tokio's blocking threads.

use std::time::Duration;

use onceonly::{StoreError, StoreErrorKind};
use tokio::runtime::Handle;
use tokio::time::timeout;

/// Runs `work` on a blocking thread. When this future is dropped, or the runtime goes away, the
/// work or its value is dropped: both own whatever has to be cleaned up.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, StoreError> {
    let runtime = runtime()?;
    match runtime.spawn_blocking(work).await {
        Ok(value) => Ok(value),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(cancelled) => Err(StoreError::new(
                StoreErrorKind::Unavailable,
                "the runtime is shutting down",
            )
            .with_source(cancelled)),
        },
    }
}

/// The runtime that polls. Without one tokio's timers and threads would panic.
pub(crate) fn runtime() -> Result<Handle, StoreError> {
    Handle::try_current().map_err(|error| {
        StoreError::new(
            StoreErrorKind::Unavailable,
            "not called on a tokio runtime, whose blocking threads SQLite needs",
        )
        .with_source(error)
    })
}

/// Runs `work` on a blocking thread, if there is one in time.
pub(crate) async fn bounded<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, StoreError> {
    runtime()?;
    timeout(limit, blocking(work)).await.unwrap_or_else(|_| {
        Err(StoreError::new(
            StoreErrorKind::Unavailable,
            format!("no blocking thread, or no answer from the disk, within {limit:?}"),
        ))
    })
}
