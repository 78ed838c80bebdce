//! MariaDB or MySQL.

use std::fs;
use std::io;

use nix::sys::signal::Signal;

use crate::binaries::MYSQL_SERVERS;
use crate::process::{self, Launch, Process, as_user};
use crate::run_dir::Readers;
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

    fn installed() -> io::Result<()> {
        binaries::find_any(&MYSQL_SERVERS).map(drop)
    }

    fn initialize(place: &Place) -> io::Result<()> {
        let user = place.user.as_ref();
        place.dir.write("init.sql", INIT, Readers::Server, user)?;
        place.dir.create("tmp", user)?;
        let mut command = if let Ok(install) = binaries::find("mariadb-install-db") {
            let mut command = as_user(&install, user, None)?;
            command.args(["--no-defaults", "--auth-root-authentication-method=normal"]);
            command.arg("--skip-test-db");
            command
        } else {
            let mut command = as_user(&binaries::find("mysqld")?, user, None)?;
            command.args(["--no-defaults", "--initialize-insecure"]);
            command
        };
        let path = place.path().display();
        command.arg(format!("--datadir={path}/data"));
        process::run(command.arg(format!("--tmpdir={path}/tmp")))
    }

    fn launch(place: &Place) -> io::Result<Process> {
        let path = place.path().display();
        let arguments = vec![
            "--no-defaults".to_owned(),
            format!("--datadir={path}/data"),
            // A server that starts removes all temporary tables there, also of others (measured).
            format!("--tmpdir={path}/tmp"),
            format!("--socket={path}/server.sock"),
            format!("--pid-file={path}/server.pid"),
            format!("--port={}", place.addr.port()),
            format!("--bind-address={}", place.addr.ip()),
            format!("--init-file={path}/init.sql"),
            format!("--ssl-ca={}", place.tls.ca().display()),
            format!("--ssl-cert={}", place.tls.certificate.display()),
            format!("--ssl-key={}", place.tls.key.display()),
            "--innodb-flush-log-at-trx-commit=1".into(),
            "--innodb-buffer-pool-size=64M".into(),
            "--max-connections=500".into(),
            "--skip-name-resolve".into(),
            // MySQL's second port, which a server beside this one may have.
            "--loose-mysqlx=OFF".into(),
        ];
        let launch = Launch {
            program: binaries::find_any(&MYSQL_SERVERS)?,
            arguments,
            user: place.user.as_ref(),
            log: place.path().join("server.log"),
            stop: Signal::SIGTERM,
        };
        let pid_file = place.path().join("server.pid");
        Process::start(&launch, |pid| {
            let written = fs::read_to_string(&pid_file).unwrap_or_default();
            written.trim().parse() == Ok(pid) && port::greets(place.addr)
        })
    }

    fn url(host: &str, port: u16) -> String {
        format!("mysql://onceonly@{host}:{port}/onceonly")
    }
}
