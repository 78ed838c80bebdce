//! What a case did last, and who waits in its world, for the message when its deadline passes.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::Harness;

tokio::task_local! {
    static CASE: Steps;
}

type Waits = Pin<Box<dyn Future<Output = String> + Send>>;

/// What is known of a running case.
#[derive(Clone, Default)]
pub(crate) struct Steps(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    last: Option<String>,
    worlds: Vec<Box<dyn Fn() -> Waits + Send>>,
}

impl Steps {
    /// Runs `case` so that its steps are noted here.
    pub(crate) async fn note<F: Future>(self, case: F) -> F::Output {
        CASE.scope(self, case).await
    }

    /// What the case finished last.
    pub(crate) fn last(&self) -> String {
        self.lock().last.as_deref().unwrap_or("none").to_owned()
    }

    /// Who waits for whom in the case's worlds.
    pub(crate) async fn waits(&self) -> String {
        let asked: Vec<Waits> = self.lock().worlds.iter().map(|world| world()).collect();
        let mut waits = Vec::new();
        for world in asked {
            waits.push(world.await);
        }
        waits.join("; ")
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Notes that the running case finished a step. Tasks that a case spawned are not followed.
pub(crate) fn finished(step: &str) {
    // Outside of a case there is nobody to tell.
    let _ = CASE.try_with(|steps| steps.lock().last = Some(step.to_owned()));
}

/// Notes a world of the running case, to be asked who waits in it.
pub(crate) fn watch<H: Harness>(world: &Arc<H>) {
    let world = Arc::downgrade(world);
    let ask = move || {
        let world = world.upgrade();
        let waits: Waits = Box::pin(async move {
            let Some(world) = world else {
                return "its world is gone".to_owned();
            };
            let waits = world.waits().await;
            waits.unwrap_or_else(|error| format!("who waits can't be told: {error}"))
        });
        waits
    };
    let _ = CASE.try_with(|steps| steps.lock().worlds.push(Box::new(ask)));
}
