//! A turn of the writer: waiting for it, beginning, and committing; and looking without it.

use std::sync::Arc;
use std::time::Duration;

use onceonly::{Event, EventId, Source, StoreError};
use tokio::time::{Instant, timeout_at};

use crate::blocking::{blocking, bounded};
use crate::claim::{begin, is_claimed};
use crate::commit::Committed;
use crate::error::{in_flight, locked_elsewhere};
use crate::retry::Retry;
use crate::writer::{Waiting, Writer};
use crate::{SqliteStore, commit};

impl SqliteStore {
    pub(crate) fn limit(&self) -> Duration {
        self.shared.connector.config.acquire_timeout
    }

    /// Whether a committed claim can be seen without the writer. `false` decides nothing.
    pub(crate) async fn is_seen(&self, event: &Event, deadline: Option<Instant>) -> bool {
        /// What an answer from the disk may take though the wait is over.
        const FLOOR: Duration = Duration::from_millis(250);
        let looking = self.look(event.source(), event.id());
        let seen = match deadline {
            Some(deadline) => timeout_at(deadline.max(Instant::now() + FLOOR), looking).await,
            None => Ok(looking.await),
        };
        matches!(seen, Ok(Ok(true)))
    }

    pub(crate) async fn look(&self, source: &Source, id: &EventId) -> Result<bool, StoreError> {
        let statements = Arc::clone(&self.shared.statements);
        let (source, id) = (source.clone(), id.clone());
        self.shared
            .readers
            .look("looking for the claim", move |connection| {
                is_claimed(connection, &statements, &source, &id)
            })
            .await
    }

    /// The writer, queueing for it until `deadline`.
    pub(crate) async fn turn(&self, deadline: Option<Instant>) -> Result<Writer, StoreError> {
        let queue = &self.shared.queue;
        if let Some(writer) = queue.try_turn() {
            return Ok(writer);
        }
        let _waiting = Waiting::new(queue);
        match deadline {
            Some(deadline) => timeout_at(deadline, queue.turn()).await.map_err(|_| {
                in_flight("another claim of this process held the writer for all of the wait")
            }),
            None => Ok(queue.turn().await),
        }
    }

    /// The writer with an open transaction that holds the file's write lock.
    pub(crate) async fn begin(&self, wait: Duration) -> Result<Writer, StoreError> {
        let deadline = Instant::now().checked_add(wait);
        let mut writer = self.turn(deadline).await?;
        let mut retry = Retry::until(deadline);
        let mut waiting = None;
        loop {
            let begun = bounded(self.limit(), move || {
                Ok::<_, StoreError>((begin(&mut writer)?, writer))
            });
            writer = match begun.await?? {
                (true, writer) => return Ok(writer),
                (false, writer) => writer,
            };
            waiting.get_or_insert_with(|| Waiting::new(&self.shared.queue));
            if !retry.pause().await {
                return Err(locked_elsewhere());
            }
        }
    }

    /// Commits what is open. Dropping the future between two attempts rolls back.
    pub(crate) async fn commit_open(&self, mut writer: Writer) -> Result<(), StoreError> {
        let mut retry = Retry::within(self.limit());
        loop {
            writer = match blocking(move || commit::commit(writer)).await?? {
                Committed::Yes => return Ok(()),
                Committed::NotYet(writer) => writer,
            };
            if !retry.pause().await {
                return Err(blocking(move || commit::blocked(&mut writer)).await?);
            }
        }
    }
}
