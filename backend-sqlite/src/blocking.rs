//! SQLite's calls block, so they run on tokio's blocking threads.

use onceonly::{StoreError, StoreErrorKind};
use tokio::runtime::Handle;

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
