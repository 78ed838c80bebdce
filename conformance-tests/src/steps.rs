//! What a case did last, for the message when its deadline passes.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

tokio::task_local! {
    static LAST: Steps;
}

/// The last step that a case finished.
#[derive(Debug, Clone, Default)]
pub(crate) struct Steps(Arc<Mutex<Option<String>>>);

impl Steps {
    /// Runs `case` so that its steps are noted here.
    pub(crate) async fn note<F: Future>(self, case: F) -> F::Output {
        LAST.scope(self, case).await
    }

    /// What the case finished last.
    pub(crate) fn last(&self) -> String {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_deref().unwrap_or("none").to_owned()
    }
}

/// Notes that the running case finished a step. Tasks that a case spawned are not followed.
pub(crate) fn finished(step: &str) {
    // Outside of a case there is nobody to tell.
    let _ = LAST.try_with(|steps| {
        *steps.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(step.to_owned());
    });
}
