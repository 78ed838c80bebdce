//! PostgreSQL.

use std::io;
use std::net::SocketAddr;
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;

use crate::binaries;
use crate::process::{self, Process, as_user};
use crate::server::{Place, Product, Server};

/// A PostgreSQL server with fsync on, TLS on, and a superuser `postgres` who needs no password.
pub type PostgresServer = Server<Postgres>;

/// PostgreSQL.
#[derive(Debug)]
pub struct Postgres;

impl Product for Postgres {
    const USER: &'static str = "postgres";

    fn initialize(place: &Place) -> io::Result<()> {
        let mut initdb = as_user(&binaries::find("initdb")?, place.user.as_ref(), None);
        initdb.args([
            "-A",
            "trust",
            "-U",
            "postgres",
            "-E",
            "UTF8",
            "--locale=C.UTF-8",
            "-N",
            "-D",
        ]);
        process::run(initdb.arg(place.path().join("data")))
    }

    fn launch(place: &Place) -> io::Result<Process> {
        let program = binaries::find("postgres")?;
        let is_ready = binaries::find("pg_isready")?;
        let path = place.path().display();
        let port = place.addr.port().to_string();
        let mut arguments = vec!["-D".to_owned(), format!("{path}/data")];
        for setting in [
            format!("port={port}"),
            "listen_addresses=127.0.0.1".into(),
            format!("unix_socket_directories={path}"),
            "ssl=on".into(),
            format!("ssl_cert_file={}", place.tls.certificate.display()),
            format!("ssl_key_file={}", place.tls.key.display()),
            "max_connections=300".into(),
            "shared_buffers=64MB".into(),
        ] {
            arguments.extend(["-c".into(), setting]);
        }
        let ready = || {
            Command::new(&is_ready)
                .args(["-q", "-h", "127.0.0.1", "-p", &port])
                .stdout(Stdio::null())
                .status()
                .is_ok_and(|status| status.success())
        };
        let log = place.path().join("server.log");
        Process::start(
            &program,
            &arguments,
            place.user.as_ref(),
            &log,
            Signal::SIGINT,
            ready,
        )
    }

    fn url(addr: SocketAddr) -> String {
        format!("postgres://postgres@{addr}/postgres")
    }
}
