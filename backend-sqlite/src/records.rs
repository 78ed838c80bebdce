//! Looking up and deleting single claims.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use onceonly::{ClaimRecords, EventId, Forget, Source, StoreError};

use crate::SqliteStore;
use crate::blocking::blocking;
use crate::error::failed;

#[async_trait]
impl ClaimRecords for SqliteStore {
    async fn is_claimed(&self, source: &Source, id: &EventId) -> Result<bool, StoreError> {
        self.ready().await?;
        self.look(source, id).await
    }

    async fn forget(
        &self,
        source: &Source,
        id: &EventId,
        wait: Duration,
    ) -> Result<Forget, StoreError> {
        self.ready().await?;
        let writer = self.begin(wait).await?;
        let statements = Arc::clone(&self.shared.statements);
        let (source, id) = (source.clone(), id.clone());
        let deleted = blocking(move || {
            let deleted = writer
                .connection()
                .prepare_cached(&statements.forget)
                .and_then(|mut forget| forget.execute((source.as_str(), id.as_str())))
                .map_err(|error| failed("forgetting the claim", error))?;
            Ok::<_, StoreError>((deleted, writer))
        });
        let (deleted, writer) = deleted.await??;
        if deleted == 0 {
            return Ok(Forget::NotClaimed);
        }
        self.commit_open(writer).await?;
        Ok(Forget::Forgotten)
    }
}
