//! `cargo xtask servers`.

use std::io;
use std::process::Command;

use clap::Args;

use crate::cargo::forget_this_package;
use crate::databases::{Database, Databases};
use crate::stop::Stop;

/// Start the servers, print their variables, and wait; or run a command with them.
///
/// A server that its variable already gives is not started. Run a test against them with
/// `cargo xtask servers -- cargo test -p onceonly-postgres`.
#[derive(Args)]
pub(crate) struct Servers {
    /// Only this database's servers; may be repeated.
    #[arg(long, value_enum)]
    only: Vec<Database>,
    /// A command to run with the variables set, instead of waiting for Ctrl-C.
    #[arg(last = true)]
    command: Vec<String>,
}

impl Servers {
    pub(crate) fn run(self) -> io::Result<()> {
        let stop = Stop::register()?;
        let databases = if self.only.is_empty() {
            Databases::start(&Database::ALL)?
        } else {
            Databases::start(&self.only)?
        };
        if let Some((program, arguments)) = self.command.split_first() {
            let mut command = Command::new(program);
            forget_this_package(command.args(arguments));
            databases.give(&mut command);
            return stop.run(&mut command);
        }
        for (name, value) in databases.variables() {
            println!("export {name}={value}");
        }
        eprintln!("xtask: Ctrl-C stops and removes them");
        stop.wait();
        Ok(())
    }
}
