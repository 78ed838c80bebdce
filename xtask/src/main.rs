//! `cargo xtask`: starts the databases and runs everything that proves onceonly.

mod cargo;
mod ci;
mod databases;
mod given;
mod install;
mod mutants;
mod proof;
mod servers;
mod stop;
mod test;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run every test, on servers that this starts and removes again.
    Test(test::Test),
    /// Start the servers, print their variables, and wait; or run a command with them.
    Servers(servers::Servers),
    /// Formatting, lints, documentation, licences, packaging.
    Ci,
    /// Deliver a folder of real webhooks to billing on each database, and judge from outside.
    Deliver(proof::Proof),
    /// Plant mistakes in the stores, and see that the suite catches each.
    Mutants(mutants::Mutants),
    /// A long run of racing deliveries with failures on each database, judged from outside.
    Soak(proof::Proof),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Test(test) => test.run(),
        Command::Servers(servers) => servers.run(),
        Command::Ci => ci::run(),
        Command::Deliver(proof) => proof.deliver(),
        Command::Mutants(mutants) => mutants.run(),
        Command::Soak(proof) => proof.soak(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}
