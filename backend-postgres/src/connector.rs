//! How connections of one pool are opened, and statements on them cancelled.

use std::future::Future;
use std::pin::Pin;

use deadpool_postgres::{Manager, ManagerConfig};
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{CancelToken, Config, Error, Socket};

/// A TLS connector whose type is forgotten.
pub(crate) trait Connector: Send + Sync {
    /// A manager that opens connections with it.
    fn manager(&self, config: Config, recycling: ManagerConfig) -> Manager;

    /// Asks the server to cancel what the token's connection is running. `Ok` says that the request
    /// was sent: the server may act on it later, and on whatever then runs.
    fn cancel(
        &self,
        token: CancelToken,
    ) -> Pin<Box<dyn Future<Output = Result<(), Error>> + Send + '_>>;
}

pub(crate) struct Typed<T>(pub(crate) T);

impl<T> Connector for Typed<T>
where
    T: MakeTlsConnect<Socket> + Clone + Sync + Send + 'static,
    T::Stream: Sync + Send,
    T::TlsConnect: Sync + Send,
    <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    fn manager(&self, config: Config, recycling: ManagerConfig) -> Manager {
        Manager::from_config(config, self.0.clone(), recycling)
    }

    fn cancel(
        &self,
        token: CancelToken,
    ) -> Pin<Box<dyn Future<Output = Result<(), Error>> + Send + '_>> {
        let tls = self.0.clone();
        Box::pin(async move { token.cancel_query(tls).await })
    }
}
