//! Delivers a folder of real webhook bodies to billing, each three times and racing, retries like a
//! provider, and judges the result from outside: from its own journal of answers and from the ledger
//! in the database, read on a connection of its own.

mod billing;
mod database;
mod journal;
mod provider;
mod verdict;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use crate::billing::Billing;
use crate::database::{Kind, Ledger};

#[derive(Parser)]
struct Arguments {
    /// Which database billing runs on: a new file, or a new database on the server of
    /// ONCEONLY_POSTGRES_URL or ONCEONLY_MYSQL_URL.
    #[arg(long, value_enum)]
    database: Kind,
    /// The bodies: `EVENT.NAME.payload.json`. Real ones beside the checkout where they are there,
    /// else a few of our own.
    #[arg(long)]
    folder: Option<PathBuf>,
    /// How many of a hundred events fail at their first delivery.
    #[arg(long, default_value_t = 30)]
    fail_first: u8,
    /// Credits one event twice behind billing's back, which must be found.
    #[arg(long)]
    sabotage: bool,
}

const REAL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/data/github");
const OUR_OWN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/bodies");

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("deliver: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<usize, Box<dyn Error>> {
    let folder = arguments.folder.clone().unwrap_or_else(|| {
        let real = PathBuf::from(REAL);
        if real.is_dir() { real } else { OUR_OWN.into() }
    });
    let events = provider::events(&folder)?;
    let ledger = Ledger::create(arguments.database)?;
    let billing = Billing::start(ledger.url(), arguments.fail_first)?;
    let journal = provider::deliver(&events, billing.addr());
    drop(billing);
    if arguments.sabotage {
        ledger.double_one()?;
    }
    let credited = ledger.credited()?;
    ledger.remove()?;
    let verdict = verdict::judge(&events, &journal, &credited);
    println!(
        "{:?}: {} events of {}: {verdict}",
        arguments.database,
        events.len(),
        folder.display()
    );
    Ok(verdict.wrong())
}
