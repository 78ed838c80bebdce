//! A throwaway PgBouncer in transaction mode.

use std::fmt;
use std::fs;
use std::io;
use std::net::SocketAddr;

use nix::sys::signal::Signal;

use crate::process::{Launch, Process};
use crate::run_dir::{Readers, RunDir, server_user};
use crate::{PostgresServer, binaries, port};

/// The PostgreSQL server that a [`PgBouncer`] connects to, and as whom.
#[derive(Clone)]
pub struct Upstream {
    /// A name or an address.
    pub host: String,
    /// Its TCP port.
    pub port: u16,
    /// Everybody who connects through the PgBouncer becomes this user.
    pub user: String,
    /// That user's password, if the server asks for one.
    pub password: Option<String>,
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

/// A PgBouncer in transaction mode before a PostgreSQL server, with few server connections, so that
/// clients share them. It asks for no password, and serves every database of the server.
#[derive(Debug)]
pub struct PgBouncer {
    // Stopped before its directory is removed.
    _process: Process,
    addr: SocketAddr,
    _dir: RunDir,
}

impl PgBouncer {
    /// Starts one on a free port before a server of this crate; returns when it answers.
    ///
    /// # Errors
    ///
    /// When PgBouncer is not installed (the message says what to install) or doesn't start.
    pub fn start(server: &PostgresServer) -> io::Result<Self> {
        Self::start_before(&Upstream {
            host: server.addr().ip().to_string(),
            port: server.addr().port(),
            user: "postgres".into(),
            password: None,
        })
    }

    /// Starts one on a free port before any server; returns when it answers.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start). It doesn't look whether the server is there.
    pub fn start_before(upstream: &Upstream) -> io::Result<Self> {
        let program = binaries::find("pgbouncer")?;
        let user = server_user("postgres")?;
        let dir = RunDir::new(user.as_ref())?;
        let log = dir.path().join("server.log");
        loop {
            let addr = port::free()?;
            let config = config(upstream, addr);
            let config = dir.write("pgbouncer.ini", &config, Readers::Server, user.as_ref())?;
            let launch = Launch {
                program: program.clone(),
                arguments: vec![config.display().to_string()],
                user: user.as_ref(),
                log: log.clone(),
                // At once; SIGINT would wait for the clients.
                stop: Signal::SIGTERM,
            };
            let listening = format!("listening on {addr}");
            match Process::start(&launch, |_| {
                fs::read_to_string(&log).is_ok_and(|log| log.contains(&listening))
            }) {
                Ok(process) => {
                    return Ok(Self {
                        _process: process,
                        addr,
                        _dir: dir,
                    });
                }
                Err(error) if port::is_free(addr) => return Err(error),
                Err(_) => {}
            }
        }
    }

    /// Where it listens.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The URL of the server's superuser through it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgres://postgres@{}/postgres", self.addr)
    }
}

fn config(upstream: &Upstream, addr: SocketAddr) -> String {
    let mut server = format!(
        "host={} port={} user={}",
        quoted(&upstream.host),
        upstream.port,
        quoted(&upstream.user)
    );
    if let Some(password) = &upstream.password {
        server += &format!(" password={}", quoted(password));
    }
    format!(
        "[databases]
* = {server}
[pgbouncer]
listen_addr = {}
listen_port = {}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 4
max_client_conn = 300
ignore_startup_parameters = extra_float_digits, options
",
        addr.ip(),
        addr.port()
    )
}

fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}
