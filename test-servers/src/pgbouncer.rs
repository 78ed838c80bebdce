//! A throwaway PgBouncer in transaction mode.

use std::io;
use std::net::SocketAddr;

use nix::sys::signal::Signal;

use crate::process::Process;
use crate::run_dir::{RunDir, server_user};
use crate::{PostgresServer, binaries, port};

/// A PgBouncer in transaction mode before a [`PostgresServer`], with few server connections, so that
/// clients share them.
#[derive(Debug)]
pub struct PgBouncer {
    // Stopped before its directory is removed.
    _process: Process,
    addr: SocketAddr,
    _dir: RunDir,
}

impl PgBouncer {
    /// Starts one on a free port; returns when it answers.
    ///
    /// # Errors
    ///
    /// When PgBouncer is not installed (the message says what to install) or doesn't start.
    pub fn start(server: &PostgresServer) -> io::Result<Self> {
        let program = binaries::find("pgbouncer")?;
        let user = server_user("postgres")?;
        let mut tries = 1;
        loop {
            let dir = RunDir::new(user.as_ref())?;
            let addr = port::free()?;
            dir.write("users.txt", "\"postgres\" \"\"\n", user.as_ref())?;
            let config = config(server.addr(), addr, &dir);
            let config = dir.write("pgbouncer.ini", &config, user.as_ref())?;
            let arguments = [config.display().to_string()];
            let log = dir.path().join("server.log");
            let ready = || port::accepts(addr);
            match Process::start(
                &program,
                &arguments,
                user.as_ref(),
                &log,
                Signal::SIGINT,
                ready,
            ) {
                Ok(process) => {
                    return Ok(Self {
                        _process: process,
                        addr,
                        _dir: dir,
                    });
                }
                Err(error) if tries == 5 => return Err(error),
                Err(_) => tries += 1,
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

fn config(server: SocketAddr, addr: SocketAddr, dir: &RunDir) -> String {
    let path = dir.path().display();
    format!(
        "[databases]
* = host={} port={}
[pgbouncer]
listen_addr = {}
listen_port = {}
unix_socket_dir = {path}
auth_type = trust
auth_file = {path}/users.txt
pool_mode = transaction
default_pool_size = 4
max_client_conn = 300
ignore_startup_parameters = extra_float_digits, options
",
        server.ip(),
        server.port(),
        addr.ip(),
        addr.port()
    )
}
