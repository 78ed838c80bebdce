//! The worlds of onceonly-postgres, with the naive store in them.

use std::net::SocketAddr;
use std::time::Duration;

use async_trait::async_trait;
use onceonly::Event;
use onceonly_conformance::{Capabilities, Escape, Harness, HarnessError, StoreOptions};

use crate::store::{NaiveStore, NaiveTx};
use crate::world::PostgresHarness;

pub(crate) struct NaiveHarness(PostgresHarness);

#[async_trait]
impl Harness for NaiveHarness {
    type Store = NaiveStore;

    fn capabilities() -> Capabilities {
        let mut capabilities = Capabilities::minimal();
        capabilities.second_store = true;
        capabilities.savepoints = true;
        capabilities.slow_statement = true;
        capabilities.dooming = true;
        capabilities.escapes = true;
        capabilities.deferred_constraints = true;
        capabilities.network = true;
        capabilities
    }

    async fn setup() -> Result<Self, HarnessError> {
        PostgresHarness::setup().await.map(Self)
    }

    async fn store(&self, options: &StoreOptions) -> Result<NaiveStore, HarnessError> {
        Ok(NaiveStore(self.0.url(options)?.parse()?))
    }

    async fn effect(&self, tx: &mut NaiveTx, account: &str) -> Result<(), HarnessError> {
        let sql = "INSERT INTO ledger (account) VALUES ($1)";
        tx.execute(sql, &[&account]).await?;
        Ok(())
    }

    async fn effects(&self, account: &str) -> Result<u64, HarnessError> {
        self.0.effects(account).await
    }

    async fn claims(&self, event: &Event) -> Result<u64, HarnessError> {
        self.0.claims(event).await
    }

    async fn age(&self, event: &Event, by: Duration) -> Result<(), HarnessError> {
        self.0.age(event, by).await
    }

    async fn waiting(&self) -> Result<u32, HarnessError> {
        self.0.waiting().await
    }

    async fn savepoint(&self, tx: &mut NaiveTx, account: &str) -> Result<(), HarnessError> {
        tx.batch_execute("SAVEPOINT nested").await?;
        self.effect(tx, account).await?;
        tx.batch_execute("ROLLBACK TO SAVEPOINT nested").await?;
        Ok(())
    }

    async fn slow_statement(&self, tx: &mut NaiveTx, seconds: u32) -> Result<(), HarnessError> {
        tx.batch_execute(&format!("SELECT pg_sleep({seconds})"))
            .await?;
        Ok(())
    }

    async fn doom(&self, tx: &mut NaiveTx) -> Result<(), HarnessError> {
        match tx.batch_execute("SELECT * FROM no_such_table").await {
            Ok(()) => Err("a statement on no table did not fail".into()),
            Err(_hidden) => Ok(()),
        }
    }

    fn escapes() -> &'static [Escape] {
        PostgresHarness::escapes()
    }

    async fn escape(&self, tx: &mut NaiveTx, escape: &Escape) -> Result<(), HarnessError> {
        for statement in escape.name.split("; ") {
            tx.batch_execute(statement).await?;
        }
        Ok(())
    }

    async fn refuse_commit(&self, tx: &mut NaiveTx) -> Result<(), HarnessError> {
        tx.batch_execute("INSERT INTO children VALUES (404)")
            .await?;
        Ok(())
    }

    fn server_addr(&self) -> Option<SocketAddr> {
        self.0.server_addr()
    }

    async fn teardown(self) -> Result<(), HarnessError> {
        self.0.teardown().await
    }
}
