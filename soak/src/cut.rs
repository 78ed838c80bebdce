//! Dropping a future somewhere in its claim, apply or commit.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Sleep, sleep};

use crate::delivery::{Cut, Phase};

/// How far a delivery is, and when its commit began.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// 0 in the claim, 1 in apply, else 1 + the ticket that was drawn before the commit.
    state: AtomicU64,
}

impl Progress {
    pub(crate) fn apply_begins(&self) {
        self.state.store(1, Ordering::SeqCst);
    }

    /// `ticket` is from 1.
    pub(crate) fn commit_begins(&self, ticket: u64) {
        self.state.store(1 + ticket, Ordering::SeqCst);
    }

    pub(crate) fn phase(&self) -> Phase {
        match self.state.load(Ordering::SeqCst) {
            0 => Phase::Claim,
            1 => Phase::Apply,
            _ => Phase::Commit,
        }
    }

    pub(crate) fn commit_ticket(&self) -> Option<u64> {
        match self.state.load(Ordering::SeqCst) {
            0 | 1 => None,
            state => Some(state - 1),
        }
    }
}

/// Runs `delivery` to its end (`Ok`), or drops it where `cut` says and tells how far it had come.
pub(crate) async fn cut_short<F: Future>(
    delivery: F,
    cut: Option<Cut>,
    progress: &Progress,
) -> Result<F::Output, Phase> {
    CutShort {
        delivery: Some(Box::pin(delivery)),
        cut,
        progress,
        polls: 0,
        timer: None,
    }
    .await
}

struct CutShort<'a, F> {
    delivery: Option<Pin<Box<F>>>,
    cut: Option<Cut>,
    progress: &'a Progress,
    polls: u32,
    timer: Option<Pin<Box<Sleep>>>,
}

impl<F: Future> Future for CutShort<'_, F> {
    type Output = Result<F::Output, Phase>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if let Some(delivery) = &mut this.delivery
            && let Poll::Ready(output) = delivery.as_mut().poll(context)
        {
            return Poll::Ready(Ok(output));
        }
        let phase = this.progress.phase();
        let Some(cut) = this.cut.filter(|cut| phase >= cut.phase) else {
            return Poll::Pending;
        };
        this.polls += 1;
        if this.timer.is_none() && this.polls >= cut.poll {
            if cut.later == Duration::ZERO {
                this.delivery = None;
                return Poll::Ready(Err(phase));
            }
            this.timer = Some(Box::pin(sleep(cut.later)));
        }
        if let Some(timer) = &mut this.timer
            && timer.as_mut().poll(context).is_ready()
        {
            this.delivery = None;
            return Poll::Ready(Err(phase));
        }
        Poll::Pending
    }
}

impl<F> Unpin for CutShort<'_, F> {}
