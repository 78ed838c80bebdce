//! A store as a careful team would write it by hand in an afternoon.

use std::error::Error;
use std::ops::Deref;
use std::time::Duration;

use async_trait::async_trait;
use onceonly::{Claim, ClaimStore, Duplicate, Event, StoreError, StoreErrorKind};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, NoTls};

/// One connection per claim, the unique index, a lock timeout, the driver's COMMIT.
pub(crate) struct NaiveStore(pub(crate) Config);

/// The open transaction. Dropping it closes its connection.
pub(crate) struct NaiveTx(Client);

impl Deref for NaiveTx {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.0
    }
}

const CLAIM: &str = "INSERT INTO processed_events (source, event_id, received_at, claim_token)
    VALUES ($1, $2, now(), '') ON CONFLICT (source, event_id) DO NOTHING";

const PRUNE: &str = "DELETE FROM processed_events WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM processed_events WHERE received_at < now() - $1 * interval '1 second'
    LIMIT $2 FOR UPDATE SKIP LOCKED))";

fn failed(error: tokio_postgres::Error) -> StoreError {
    let kind = match error.code() {
        Some(code) if *code == SqlState::LOCK_NOT_AVAILABLE => StoreErrorKind::InFlight,
        Some(_) => StoreErrorKind::Other,
        None => StoreErrorKind::Unavailable,
    };
    StoreError::new(kind, "").with_source(error)
}

impl NaiveStore {
    async fn connect(&self) -> Result<Client, StoreError> {
        let (client, connection) = self.0.connect(NoTls).await.map_err(failed)?;
        tokio::spawn(connection);
        Ok(client)
    }
}

#[async_trait]
impl ClaimStore for NaiveStore {
    type Tx = NaiveTx;

    async fn claim(&self, event: &Event, wait: Duration) -> Result<Claim<NaiveTx>, StoreError> {
        let client = self.connect().await?;
        let wait = wait.as_millis().clamp(1, 1_000_000_000);
        let begin = format!("BEGIN; SET LOCAL lock_timeout = {wait}");
        client.batch_execute(&begin).await.map_err(failed)?;
        let (source, id) = (event.source().as_str(), event.id().as_str());
        match client
            .execute(CLAIM, &[&source, &id])
            .await
            .map_err(failed)?
        {
            1 => Ok(Claim::Fresh(NaiveTx(client))),
            _ => Ok(Claim::Duplicate(Duplicate::new())),
        }
    }

    async fn commit(&self, tx: NaiveTx) -> Result<(), StoreError> {
        tx.batch_execute("COMMIT").await.map_err(failed)
    }

    async fn rollback(&self, tx: NaiveTx) -> Result<(), StoreError> {
        tx.batch_execute("ROLLBACK").await.map_err(failed)
    }

    async fn prune(&self, older_than: Duration, limit: u32) -> Result<u64, StoreError> {
        let client = self.connect().await?;
        let (age, limit) = (older_than.as_secs_f64(), i64::from(limit));
        let pruned = client.execute(PRUNE, &[&age, &limit]).await;
        pruned.map_err(failed)
    }

    fn is_conflict(&self, _error: &(dyn Error + 'static)) -> bool {
        false
    }
}
