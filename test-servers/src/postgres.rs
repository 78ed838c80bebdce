//! PostgreSQL.

use std::fs;
use std::io;

use nix::sys::signal::Signal;

use crate::binaries;
use crate::process::{self, Launch, Process, as_user};
use crate::server::{Place, Product, Server};

/// A PostgreSQL server with fsync on, TLS on, and a superuser `postgres` who needs no password.
pub type PostgresServer = Server<Postgres>;

/// PostgreSQL.
#[derive(Debug)]
pub struct Postgres;

impl Product for Postgres {
    const USER: &'static str = "postgres";

    fn installed() -> io::Result<()> {
        binaries::find("initdb").map(drop)
    }

    fn initialize(place: &Place) -> io::Result<()> {
        let mut initdb = as_user(&binaries::find("initdb")?, place.user.as_ref(), None)?;
        initdb.args(["-A", "trust", "-U", "postgres", "-E", "UTF8"]);
        initdb.args(["--locale=C.UTF-8", "--no-sync", "-D"]);
        process::run(initdb.arg(place.path().join("data")))
    }

    fn launch(place: &Place) -> io::Result<Process> {
        let path = place.path().display();
        let mut arguments = vec!["-D".to_owned(), format!("{path}/data")];
        for setting in [
            format!("port={}", place.addr.port()),
            format!("listen_addresses={}", place.addr.ip()),
            format!("unix_socket_directories={path}"),
            "ssl=on".into(),
            format!("ssl_cert_file={}", place.tls.certificate.display()),
            format!("ssl_key_file={}", place.tls.key.display()),
            "max_connections=300".into(),
            "shared_buffers=64MB".into(),
        ] {
            arguments.extend(["-c".into(), setting]);
        }
        let launch = Launch {
            program: binaries::find("postgres")?,
            arguments,
            user: place.user.as_ref(),
            log: place.path().join("server.log"),
            // A "fast" shutdown; SIGTERM would wait for the clients to leave.
            stop: Signal::SIGINT,
        };
        let postmaster = place.path().join("data/postmaster.pid");
        Process::start(&launch, |pid| {
            fs::read_to_string(&postmaster).is_ok_and(|file| is_ready(&file, pid))
        })
    }

    fn url(host: &str, port: u16) -> String {
        format!("postgres://postgres@{host}:{port}/postgres")
    }
}

/// Whether this `postmaster.pid` says that the server of this process id accepts connections: the
/// first line is its process id, the eighth its status (`src/include/utils/pidfile.h`).
fn is_ready(postmaster: &str, pid: u32) -> bool {
    let mut lines = postmaster.lines();
    lines.next().and_then(|line| line.trim().parse().ok()) == Some(pid)
        && lines.nth(6).is_some_and(|status| status.trim() == "ready")
}
