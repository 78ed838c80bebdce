//! MariaDB or MySQL.

use std::io;
use std::net::SocketAddr;

use nix::sys::signal::Signal;

use crate::process::{self, Process, as_user};
use crate::server::{Place, Product, Server};
use crate::{binaries, port};

const INIT: &str = "CREATE USER IF NOT EXISTS 'onceonly'@'%';
GRANT ALL ON *.* TO 'onceonly'@'%' WITH GRANT OPTION;
CREATE DATABASE IF NOT EXISTS onceonly;
";

/// A MariaDB server (a MySQL one where only that is installed) that flushes at each commit, with TLS
/// on, a superuser `onceonly` who needs no password, and a database of the same name.
pub type MariaDbServer = Server<MariaDb>;

/// MariaDB or MySQL.
#[derive(Debug)]
pub struct MariaDb;

impl Product for MariaDb {
    const USER: &'static str = "mysql";

    fn initialize(place: &Place) -> io::Result<()> {
        place.dir.write("init.sql", INIT, place.user.as_ref())?;
        let data = format!("--datadir={}/data", place.path().display());
        let mut command = if let Ok(install) = binaries::find("mariadb-install-db") {
            let mut command = as_user(&install, place.user.as_ref(), None);
            command.args(["--no-defaults", "--auth-root-authentication-method=normal"]);
            command.arg("--skip-test-db");
            command
        } else {
            let mut command = as_user(&binaries::find("mysqld")?, place.user.as_ref(), None);
            command.args(["--no-defaults", "--initialize-insecure"]);
            command
        };
        process::run(command.arg(data))
    }

    fn launch(place: &Place) -> io::Result<Process> {
        let program = binaries::find("mariadbd").or_else(|_| binaries::find("mysqld"))?;
        let path = place.path().display();
        let arguments = [
            "--no-defaults".to_owned(),
            format!("--datadir={path}/data"),
            format!("--socket={path}/server.sock"),
            format!("--pid-file={path}/server.pid"),
            format!("--port={}", place.addr.port()),
            "--bind-address=127.0.0.1".into(),
            format!("--init-file={path}/init.sql"),
            format!("--ssl-ca={}", place.tls.ca().display()),
            format!("--ssl-cert={}", place.tls.certificate.display()),
            format!("--ssl-key={}", place.tls.key.display()),
            "--innodb-flush-log-at-trx-commit=1".into(),
            "--innodb-buffer-pool-size=64M".into(),
            "--max-connections=500".into(),
            "--skip-name-resolve".into(),
        ];
        let log = place.path().join("server.log");
        let ready = || port::greets(place.addr);
        Process::start(
            &program,
            &arguments,
            place.user.as_ref(),
            &log,
            Signal::SIGTERM,
            ready,
        )
    }

    fn url(addr: SocketAddr) -> String {
        format!("mysql://onceonly@{addr}/onceonly")
    }
}
