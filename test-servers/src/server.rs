//! A throwaway database server of either product.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::unistd::User;

use crate::process::Process;
use crate::run_dir::{RunDir, server_user};
use crate::{TlsFiles, port};

/// What differs between the products.
pub trait Product: Sized {
    /// The user that its server runs as when this process is root.
    #[doc(hidden)]
    const USER: &'static str;

    /// Whether it is installed; if not, the error says what to install.
    #[doc(hidden)]
    fn installed() -> io::Result<()>;

    /// Makes the data directory.
    #[doc(hidden)]
    fn initialize(place: &Place) -> io::Result<()>;

    /// Starts the server and waits until it answers.
    #[doc(hidden)]
    fn launch(place: &Place) -> io::Result<Process>;

    /// The URL of a superuser who needs no password.
    #[doc(hidden)]
    fn url(host: &str, port: u16) -> String;
}

/// Where a server is.
#[derive(Debug)]
pub struct Place {
    pub(crate) addr: SocketAddr,
    pub(crate) user: Option<User>,
    pub(crate) tls: TlsFiles,
    pub(crate) dir: RunDir,
}

impl Place {
    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// A database server of its own data directory, socket and port, with durable settings and TLS on.
pub struct Server<P: Product> {
    // Stopped before its directory is removed.
    process: Mutex<Option<Process>>,
    place: Place,
    product: std::marker::PhantomData<fn() -> P>,
}

impl<P: Product> Server<P> {
    /// Starts one on a free port; returns when it answers.
    ///
    /// # Errors
    ///
    /// When the product is not installed (the message says what to install) or doesn't start.
    pub fn start() -> io::Result<Self> {
        P::installed()?;
        let user = server_user(P::USER)?;
        let dir = RunDir::new(user.as_ref())?;
        let tls = TlsFiles::new(&dir, user.as_ref())?;
        let mut place = Place {
            addr: port::free()?,
            user,
            tls,
            dir,
        };
        P::initialize(&place)?;
        loop {
            match P::launch(&place) {
                Ok(process) => {
                    return Ok(Self {
                        process: Mutex::new(Some(process)),
                        place,
                        product: std::marker::PhantomData,
                    });
                }
                Err(error) if port::is_free(place.addr) => return Err(error),
                // Another process took the port between the look and the start.
                Err(_) => place.addr = port::free()?,
            }
        }
    }

    /// Where it listens.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.place.addr
    }

    /// The URL of its superuser, who needs no password.
    #[must_use]
    pub fn url(&self) -> String {
        P::url(&self.place.addr.ip().to_string(), self.place.addr.port())
    }

    /// The same with the host name for which its certificate is valid.
    #[must_use]
    pub fn tls_url(&self) -> String {
        P::url("localhost", self.place.addr.port())
    }

    /// Its certificates.
    #[must_use]
    pub const fn tls(&self) -> &TlsFiles {
        &self.place.tls
    }

    /// Kills it and all of its processes as `kill -9` does; returns when they are gone. Does nothing
    /// while it is down.
    ///
    /// # Errors
    ///
    /// When a process can't be killed.
    pub fn kill(&self) -> io::Result<()> {
        kill(&mut self.process())
    }

    /// Starts it again on the same data and port; returns when it answers. Does nothing while it
    /// runs.
    ///
    /// # Errors
    ///
    /// When it doesn't start; the message has the end of its log.
    pub fn start_again(&self) -> io::Result<()> {
        self.launch(&mut self.process())
    }

    /// [`kill`](Self::kill), then [`start_again`](Self::start_again).
    ///
    /// # Errors
    ///
    /// As those.
    pub fn kill_and_restart(&self) -> io::Result<()> {
        let mut process = self.process();
        kill(&mut process)?;
        self.launch(&mut process)
    }

    fn launch(&self, process: &mut Option<Process>) -> io::Result<()> {
        if process.is_none() {
            *process = Some(P::launch(&self.place)?);
        }
        Ok(())
    }

    fn process(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn kill(process: &mut Option<Process>) -> io::Result<()> {
    process.take().map_or(Ok(()), |mut process| process.kill())
}

impl<P: Product> fmt::Debug for Server<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}
