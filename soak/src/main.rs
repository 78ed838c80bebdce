//! A long run of racing deliveries with failures planted in them, judged from outside.
//!
//! `onceonly-soak run --database sqlite` delivers in one child process and judges in another.
//! README.md says what is planted and what is judged.

mod arguments;
mod counts;
mod cut;
mod database;
mod deliver;
mod delivery;
mod evidence;
mod journal;
mod judge;
mod run;
mod sabotage;
mod schedule;
mod verdict;

use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::EnvFilter;

use crate::arguments::{Arguments, Command};

/// Any failure of the run itself, as opposed to a wrong that it found.
type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    // Planted failures fill a log; `RUST_LOG=onceonly=info` shows them.
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("off"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    let done = match Arguments::parse().command {
        Command::Deliver(deliver) => deliver::main(&deliver),
        Command::Judge(judge) => judge::main(&judge),
        Command::Run(run) => run::main(&run),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("soak: {failure}");
            ExitCode::FAILURE
        }
    }
}
