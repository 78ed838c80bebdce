//! A TCP proxy that cuts the connection at COMMIT.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

/// What to do when a client sends a COMMIT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Let it pass.
    Never = 0,
    /// Close both sides without forwarding it.
    Before = 1,
    /// Forward it, let the server work, and close both sides without forwarding the answer.
    After = 2,
    /// Forward it, keep both sides open, and never forward anything again.
    Silence = 3,
}

/// Stands between a store and its server.
#[derive(Debug)]
pub(crate) struct Proxy {
    addr: SocketAddr,
    cut: Arc<AtomicU8>,
    connections: Arc<Mutex<JoinSet<()>>>,
    task: AbortHandle,
}

impl Proxy {
    pub(crate) async fn start(server: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let addr = listener.local_addr()?;
        let cut = Arc::new(AtomicU8::new(Cut::Never as u8));
        let armed = Arc::clone(&cut);
        let connections = Arc::new(Mutex::new(JoinSet::new()));
        let open = Arc::clone(&connections);
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let armed = Arc::clone(&armed);
                let mut open = open.lock().await;
                while open.try_join_next().is_some() {}
                open.spawn(async move {
                    let _ = relay(client, server, armed).await;
                });
            }
        });
        Ok(Self {
            addr,
            cut,
            connections,
            task: task.abort_handle(),
        })
    }

    pub(crate) const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Does this at the next COMMIT, once.
    pub(crate) fn arm(&self, cut: Cut) {
        self.cut.store(cut as u8, Ordering::SeqCst);
    }

    /// Closes every connection that is open now. Once it returned, nothing more passes through them.
    pub(crate) async fn sever(&self) {
        self.connections.lock().await.shutdown().await;
    }

    /// Whether what was armed has happened.
    pub(crate) fn has_cut(&self) -> bool {
        self.cut.load(Ordering::SeqCst) == Cut::Never as u8
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn relay(mut client: TcpStream, server: SocketAddr, cut: Arc<AtomicU8>) -> io::Result<()> {
    let mut server = TcpStream::connect(server).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (mut sent, mut answered) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        tokio::select! {
            read = client.read(&mut sent) => {
                let bytes = &sent[..read?];
                if bytes.is_empty() {
                    return Ok(());
                }
                let armed = cut.load(Ordering::SeqCst);
                if armed != Cut::Never as u8 && bytes.windows(6).any(|word| word == b"COMMIT") {
                    cut.store(Cut::Never as u8, Ordering::SeqCst);
                    if armed == Cut::Silence as u8 {
                        server.write_all(bytes).await?;
                        while client.read(&mut sent).await? > 0 {}
                        return Ok(());
                    }
                    if armed == Cut::After as u8 {
                        server.write_all(bytes).await?;
                        // The server has done its work when it has nothing more to say.
                        let quiet = Duration::from_millis(500);
                        while matches!(timeout(quiet, server.read(&mut answered)).await, Ok(Ok(1..))) {}
                    }
                    return Ok(());
                }
                server.write_all(bytes).await?;
            }
            read = server.read(&mut answered) => {
                let bytes = &answered[..read?];
                if bytes.is_empty() {
                    return Ok(());
                }
                client.write_all(bytes).await?;
            }
        }
    }
}
