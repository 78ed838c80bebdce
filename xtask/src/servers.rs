//! `cargo xtask servers`.

use std::io;
use std::process::Command;

use clap::Args;

use crate::cargo::Stop;
use crate::databases::{Database, Databases};

/// Start the servers, print their variables, and wait; or run a command with them.
#[derive(Args)]
pub(crate) struct Servers {
    /// A command to run with the variables set, instead of waiting for Ctrl-C.
    #[arg(last = true)]
    command: Vec<String>,
}

impl Servers {
    pub(crate) fn run(self) -> io::Result<()> {
        let stop = Stop::register()?;
        let databases = Databases::start(&Database::ALL)?;
        if let Some((program, arguments)) = self.command.split_first() {
            let mut command = Command::new(program);
            databases.give(command.args(arguments));
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
