//! A throwaway database server of either product.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::unistd::User;

use crate::process::Process;
use crate::run_dir::{RunDir, server_user};
use crate::{TlsFiles, port};

/// What differs between the products.
pub trait Product: Sized {
    /// The user that its server runs as when this process is root.
    #[doc(hidden)]
    const USER: &'static str;

    /// Makes the data directory.
    #[doc(hidden)]
    fn initialize(place: &Place) -> io::Result<()>;

    /// Starts the server and waits until it answers.
    #[doc(hidden)]
    fn launch(place: &Place) -> io::Result<Process>;

    /// The URL of a superuser who needs no password.
    #[doc(hidden)]
    fn url(addr: SocketAddr) -> String;
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
        let user = server_user(P::USER)?;
        let dir = RunDir::new(user.as_ref())?;
        let tls = TlsFiles::new(&dir, user.as_ref())?;
        let place = Place {
            addr: port::free()?,
            user,
            tls,
            dir,
        };
        P::initialize(&place)?;
        let process = Mutex::new(None);
        let mut server = Self {
            process,
            place,
            product: std::marker::PhantomData,
        };
        let mut tries = 1;
        // Another process may take the port between the look and the start.
        while let Err(error) = server.start_again() {
            if tries == 5 {
                return Err(error);
            }
            tries += 1;
            server.place.addr = port::free()?;
        }
        Ok(server)
    }

    /// Where it listens.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.place.addr
    }

    /// The URL of its superuser.
    #[must_use]
    pub fn url(&self) -> String {
        P::url(self.place.addr)
    }

    /// Its certificates.
    #[must_use]
    pub const fn tls(&self) -> &TlsFiles {
        &self.place.tls
    }

    /// Kills it as `kill -9` does.
    ///
    /// # Errors
    ///
    /// When the process can't be killed.
    pub fn kill(&self) -> io::Result<()> {
        match self
            .process
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
        {
            Some(mut process) => process.kill(),
            None => Ok(()),
        }
    }

    /// Starts it again on the same data and port; returns when it answers.
    ///
    /// # Errors
    ///
    /// When it doesn't start within about half a minute.
    pub fn start_again(&self) -> io::Result<()> {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            // The children of a killed PostgreSQL hold its shared memory until they notice.
            match P::launch(&self.place) {
                Ok(process) => {
                    *self.process.lock().unwrap_or_else(PoisonError::into_inner) = Some(process);
                    return Ok(());
                }
                Err(error) if Instant::now() > deadline || port::accepts(self.place.addr) => {
                    return Err(error);
                }
                Err(_) => thread::sleep(Duration::from_millis(100)),
            }
        }
    }

    /// [`kill`](Self::kill), then [`start_again`](Self::start_again).
    ///
    /// # Errors
    ///
    /// As those.
    pub fn kill_and_restart(&self) -> io::Result<()> {
        self.kill()?;
        self.start_again()
    }
}

impl<P: Product> fmt::Debug for Server<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}
