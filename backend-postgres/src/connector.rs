//! How connections of one pool are opened, and statements on them cancelled.

use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use deadpool_postgres::{Manager, ManagerConfig};
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{CancelToken, Config, NoTls, Socket};

use crate::cancel::{self, CancelStream, Quiet};

type Cancelling<'a> =
    Pin<Box<dyn Future<Output = Result<(), Box<dyn Error + Send + Sync>>> + Send + 'a>>;

/// A TLS connector whose type is forgotten.
pub(crate) trait Connector: Send + Sync {
    /// A manager that opens connections with it.
    fn manager(&self, config: Config, recycling: ManagerConfig) -> Manager;

    /// Asks the server to cancel what the token's connection is running. `Ok` says that the request
    /// was sent: the server may act on it later, and on whatever then runs.
    fn cancel<'a>(&'a self, token: CancelToken, server: Option<&'a Config>) -> Cancelling<'a>;
}

/// Who cancels the statements of a pool's connections.
pub(crate) struct Canceller {
    pub(crate) connector: Arc<dyn Connector>,
    /// What the pool connects to, if that is known.
    pub(crate) server: Option<Config>,
}

impl Canceller {
    pub(crate) fn cancel(&self, token: CancelToken) -> Cancelling<'_> {
        self.connector.cancel(token, self.server.as_ref())
    }
}

/// No TLS.
pub(crate) struct Plain;

impl Connector for Plain {
    fn manager(&self, config: Config, recycling: ManagerConfig) -> Manager {
        Manager::from_config(config, NoTls, recycling)
    }

    fn cancel<'a>(&'a self, token: CancelToken, server: Option<&'a Config>) -> Cancelling<'a> {
        Box::pin(async move {
            match server {
                Some(server) => cancel::cancel(&token, server, |_host| Ok(NoTls)).await,
                None => Ok(token.cancel_query(NoTls).await?),
            }
        })
    }
}

/// TLS of this library.
pub(crate) struct Typed<T>(pub(crate) T);

impl<T> Connector for Typed<T>
where
    T: MakeTlsConnect<Socket> + MakeTlsConnect<CancelStream> + Clone + Sync + Send + 'static,
    <T as MakeTlsConnect<Socket>>::Stream: Sync + Send,
    <T as MakeTlsConnect<Socket>>::TlsConnect: Sync + Send,
    <<T as MakeTlsConnect<Socket>>::TlsConnect as TlsConnect<Socket>>::Future: Send,
    <T as MakeTlsConnect<CancelStream>>::Stream: Send + 'static,
    <T as MakeTlsConnect<CancelStream>>::TlsConnect: Send,
    <<T as MakeTlsConnect<CancelStream>>::TlsConnect as TlsConnect<CancelStream>>::Future:
        Send + 'static,
{
    fn manager(&self, config: Config, recycling: ManagerConfig) -> Manager {
        Manager::from_config(config, self.0.clone(), recycling)
    }

    fn cancel<'a>(&'a self, token: CancelToken, server: Option<&'a Config>) -> Cancelling<'a> {
        let mut tls = self.0.clone();
        Box::pin(async move {
            match server {
                Some(server) => {
                    let connect = |host: &str| {
                        MakeTlsConnect::<CancelStream>::make_tls_connect(&mut tls, host)
                            .map(Quiet)
                            .map_err(Into::into)
                    };
                    cancel::cancel(&token, server, connect).await
                }
                None => Ok(token.cancel_query(tls).await?),
            }
        })
    }
}
