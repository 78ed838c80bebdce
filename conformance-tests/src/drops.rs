//! Dropping a future after so many polls.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// What became of a future that may be polled only so often.
#[derive(Debug)]
pub(crate) enum Polled<T> {
    /// It was ready in time.
    Ready(T),
    /// It was dropped while pending.
    Dropped,
}

/// Polls `future` at most `polls` times, each time when it asks for it, and then drops it.
pub(crate) async fn after<F: Future>(polls: u32, future: F) -> Polled<F::Output> {
    Counted {
        future: Some(Box::pin(future)),
        polls,
    }
    .await
}

struct Counted<F> {
    future: Option<Pin<Box<F>>>,
    polls: u32,
}

impl<F: Future> Future for Counted<F> {
    type Output = Polled<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if this.polls == 0 {
            this.future = None;
        }
        let Some(future) = &mut this.future else {
            return Poll::Ready(Polled::Dropped);
        };
        this.polls -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(value) => Poll::Ready(Polled::Ready(value)),
            Poll::Pending if this.polls == 0 => {
                this.future = None;
                Poll::Ready(Polled::Dropped)
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<F> Unpin for Counted<F> {}
