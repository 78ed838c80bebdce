//! `cargo xtask test`.

use std::env;
use std::io;
use std::process::Stdio;

use clap::Args;

use crate::cargo::cargo;
use crate::databases::{Database, Databases};
use crate::stop::Stop;

const THREADS: &str = "RUST_TEST_THREADS";
/// Tests wait for servers more than they compute, and each server has only so many connections.
const DEFAULT_THREADS: &str = "4";

/// Run every test, on servers that this starts and removes again.
///
/// Servers given by ONCEONLY_POSTGRES_URL, ONCEONLY_PGBOUNCER_URL and ONCEONLY_MYSQL_URL are used;
/// the others are started from installed binaries, which are installed with apt where this is root
/// on Debian or Ubuntu. Their data is in /var/tmp, or in ONCEONLY_RUN_DIR, and removed at the end.
/// RUST_TEST_THREADS is 4 if it isn't set.
#[derive(Args)]
pub(crate) struct Test {
    /// Test only what needs this database; may be repeated.
    #[arg(long, value_enum)]
    only: Vec<Database>,
    /// Passed on to `cargo test`.
    #[arg(last = true)]
    rest: Vec<String>,
}

impl Test {
    pub(crate) fn run(self) -> io::Result<()> {
        let stop = Stop::register()?;
        let wanted = if self.only.is_empty() {
            Database::ALL.to_vec()
        } else {
            self.only.clone()
        };
        let databases = Databases::start(&wanted)?;
        let mut command = cargo(&["test", "--all-features", "--no-fail-fast"]);
        if self.only.is_empty() {
            command.arg("--workspace");
        } else {
            for package in packages(&wanted) {
                command.args(["-p", package]);
            }
        }
        command.args(&self.rest);
        databases.give(&mut command);
        if env::var_os(THREADS).is_none() {
            command.env(THREADS, DEFAULT_THREADS);
        }
        command.stdin(Stdio::null());
        stop.run(&mut command)
    }
}

fn packages(wanted: &[Database]) -> Vec<&'static str> {
    let mut packages = vec!["onceonly", "onceonly-migrations"];
    for database in wanted {
        packages.push(match database {
            Database::Memory => "onceonly-conformance",
            Database::Sqlite => "onceonly-sqlite",
            Database::Postgres => "onceonly-postgres",
            Database::Mysql => "onceonly-mysql",
        });
    }
    packages
}
