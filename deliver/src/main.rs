//! Delivers a folder of real webhook bodies to billing, each three times and racing, retries like a
//! provider, and judges the result from outside: from its own journal of answers and from the ledger
//! in the database, read on a connection of its own.

mod billing;
mod database;
mod events;
mod journal;
mod provider;
mod verdict;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use crate::billing::Billing;
use crate::database::{Database, Kind};
use crate::journal::Journal;
use crate::provider::Provider;

/// Delivers webhooks to billing, each three times and racing, and judges the ledger.
#[derive(Parser)]
struct Arguments {
    /// Which database billing runs on: a new file, or a new database on the server of
    /// `ONCEONLY_POSTGRES_URL` or `ONCEONLY_MYSQL_URL`.
    #[arg(long, value_enum, default_value = "sqlite")]
    database: Kind,
    /// The bodies, `EVENT.NAME.payload.json`: real ones beside the checkout where they are there,
    /// else a few of our own.
    #[arg(long)]
    folder: Option<PathBuf>,
    /// How many of a hundred events fail once in `apply`.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u8).range(..=100))]
    fail_first: u8,
    /// Where the answers are written, one line each, instead of a file that is removed.
    #[arg(long)]
    journal: Option<PathBuf>,
    /// Loses one credit and doubles another one behind billing's back, which must be found.
    #[arg(long)]
    sabotage: bool,
}

const REAL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/data/github");
const OUR_OWN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/bodies");

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("deliver: {error}");
            ExitCode::FAILURE
        }
    }
}

/// How much was wrong.
fn run(arguments: Arguments) -> Result<usize, Box<dyn Error>> {
    let folder = arguments.folder.unwrap_or_else(|| {
        let real = PathBuf::from(REAL);
        if real.is_dir() { real } else { OUR_OWN.into() }
    });
    let events = events::read(&folder)?;
    let scratch = tempfile::tempdir()?;
    let path = arguments
        .journal
        .unwrap_or_else(|| scratch.path().join("journal"));
    let database = Database::create(arguments.database)?;

    let billing = Billing::start(database.url(), arguments.fail_first)?;
    let journal = Journal::create(&path)?;
    Provider::new(billing.addr(), &journal).deliver(&events)?;
    billing.stop()?;
    if arguments.sabotage {
        database.sabotage()?;
    }

    let mut verdict = verdict::judge(&events, &journal::read(&path)?, &database.ledger()?);
    if arguments.fail_first > 0 && verdict.retried == 0 {
        let nothing = "nothing failed, so that nothing is proven about failures";
        verdict.wrong.push(nothing.to_owned());
    }
    println!(
        "{:?}: {} events of {}: {verdict}",
        arguments.database,
        events.len(),
        folder.display()
    );
    Ok(verdict.wrong.len())
}
