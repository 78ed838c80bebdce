//! Cancel requests whose connection stays open until the server closes it, as libpq does it.
//!
//! tokio-postgres closes it at once. PgBouncer up to 1.19.0 then crashes, for all of its clients
//! (pgbouncer#801; measured on 1.18.0).

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
#[cfg(unix)]
use tokio::net::UnixStream;
use tokio::net::{TcpStream, lookup_host};
use tokio_postgres::config::Host;
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};
use tokio_postgres::{CancelToken, Config};

/// Sends the request to every address of the server: it is not known which of them the connection
/// has, and a server that doesn't know the token ignores it. Returns when the request was taken.
pub(crate) async fn cancel<T>(
    token: &CancelToken,
    server: &Config,
    mut connect: impl FnMut(&str) -> Result<T, Box<dyn Error + Send + Sync>>,
) -> Result<(), Box<dyn Error + Send + Sync>>
where
    T: TlsConnect<CancelStream>,
{
    let hosts = server.get_hosts();
    let addresses = server.get_hostaddrs();
    let ports = server.get_ports();
    let mut result = Err("the server has no address".into());
    for n in 0..hosts.len().max(addresses.len()) {
        let port = *ports.get(n).or_else(|| ports.first()).unwrap_or(&5432);
        let name = match hosts.get(n) {
            Some(Host::Tcp(name)) => name.as_str(),
            _ => "",
        };
        let streams = match (addresses.get(n), hosts.get(n)) {
            (Some(address), _) => dial(&address.to_string(), port).await,
            (None, Some(Host::Tcp(name))) => dial(name, port).await,
            #[cfg(unix)]
            (None, Some(Host::Unix(directory))) => {
                UnixStream::connect(directory.join(format!(".s.PGSQL.{port}")))
                    .await
                    .map(|stream| vec![CancelStream::new(stream)])
            }
            (None, None) => continue,
        };
        match streams {
            Ok(streams) => {
                for mut stream in streams {
                    token
                        .cancel_query_raw(stream.clone(), connect(name)?)
                        .await?;
                    // The server closes it when it has sent the signal.
                    let mut rest = [0; 64];
                    while matches!(stream.read(&mut rest).await, Ok(1..)) {}
                    result = Ok(());
                }
            }
            Err(error) if result.is_err() => result = Err(error.into()),
            Err(_) => {}
        }
    }
    result
}

async fn dial(host: &str, port: u16) -> io::Result<Vec<CancelStream>> {
    let mut streams = Vec::new();
    let mut last = None;
    for address in lookup_host((host, port)).await? {
        match TcpStream::connect(address).await {
            Ok(stream) => streams.push(CancelStream::new(stream)),
            Err(error) => last = Some(error),
        }
    }
    match last {
        Some(error) if streams.is_empty() => Err(error),
        _ => Ok(streams),
    }
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// The connection of a cancel request. Opaque: it only names what a TLS connector has to be able to
/// connect besides [`tokio_postgres::Socket`], which connectors generic over their stream are.
#[derive(Clone)]
pub struct CancelStream(Arc<Mutex<dyn Stream>>);

impl CancelStream {
    fn new(stream: impl Stream + 'static) -> Self {
        Self(Arc::new(Mutex::new(stream)))
    }

    fn with<T>(&self, poll: impl FnOnce(Pin<&mut dyn Stream>) -> T) -> T {
        let mut stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        poll(Pin::new(&mut *stream))
    }
}

impl fmt::Debug for CancelStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CancelStream(..)")
    }
}

impl AsyncRead for CancelStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.with(|stream| stream.poll_read(cx, buf))
    }
}

impl AsyncWrite for CancelStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.with(|stream| stream.poll_write(cx, buf))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.with(|stream| stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// A TLS connector, or a stream of it, that doesn't say goodbye.
pub(crate) struct Quiet<T>(pub(crate) T);

impl<T> TlsConnect<CancelStream> for Quiet<T>
where
    T: TlsConnect<CancelStream>,
    T::Stream: 'static,
    T::Future: Send + 'static,
{
    type Stream = Quiet<T::Stream>;
    type Error = T::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Stream, T::Error>> + Send>>;

    fn connect(self, stream: CancelStream) -> Self::Future {
        let connecting = self.0.connect(stream);
        Box::pin(async move { connecting.await.map(Quiet) })
    }
}

impl<S: TlsStream> TlsStream for Quiet<S>
where
    S: Unpin,
{
    fn channel_binding(&self) -> ChannelBinding {
        self.0.channel_binding()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Quiet<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Quiet<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
