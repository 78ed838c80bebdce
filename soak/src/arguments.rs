//! The command line.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::Failure;
use crate::sabotage::Sabotage;

#[derive(Debug, Parser)]
#[command(name = "onceonly-soak", about = "A long run of racing deliveries")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Deliver events with planted failures and write every answer to the journal.
    Deliver(Deliver),
    /// Compare the journal with what the database holds, without onceonly.
    Judge(Judge),
    /// Deliver in one process, then judge in another.
    Run(Run),
}

/// Which database, and where it is.
#[derive(Debug, Clone, Args)]
pub(crate) struct Place {
    #[arg(long, value_enum)]
    pub(crate) database: Kind,
    /// PostgreSQL, MySQL, MariaDB: the server and database. The tables `soak_*` in it are made anew.
    #[arg(long)]
    pub(crate) url: Option<String>,
    /// SQLite: the file. The tables `soak_*` in it are made anew.
    #[arg(long)]
    pub(crate) file: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    Sqlite,
    Postgres,
    Mysql,
}

impl Kind {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
            Self::Mysql => "mysql",
        }
    }

    pub(crate) const fn variable(self) -> &'static str {
        match self {
            Self::Sqlite => "ONCEONLY_SQLITE_FILE",
            Self::Postgres => "ONCEONLY_POSTGRES_URL",
            Self::Mysql => "ONCEONLY_MYSQL_URL",
        }
    }
}

impl Place {
    /// `--url`, or the variable that `cargo xtask` sets.
    pub(crate) fn url(&self) -> Result<String, Failure> {
        let variable = self.database.variable();
        let given = self.url.clone().or_else(|| std::env::var(variable).ok());
        given.ok_or_else(|| {
            let name = self.database.name();
            format!("give --url or set {variable}, or run `cargo xtask soak --only {name}`").into()
        })
    }

    pub(crate) fn file(&self) -> Result<PathBuf, Failure> {
        self.file
            .clone()
            .ok_or_else(|| "give --file for SQLite".into())
    }
}

/// How much is asked for.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Size {
    #[arg(long, default_value_t = 30_000)]
    pub(crate) events: u32,
    /// Deliveries of all events together, at least one of each.
    #[arg(long, default_value_t = 100_000)]
    pub(crate) deliveries: u32,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Load {
    #[command(flatten)]
    pub(crate) size: Size,
    /// How many deliveries are under way at a time.
    #[arg(long, default_value = "32")]
    pub(crate) concurrency: NonZeroU32,
    /// Decides what is delivered when and what is planted in it; random unless given.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Ends a random busy session of the server every so many milliseconds.
    #[arg(long, value_name = "MILLISECONDS")]
    pub(crate) kill_every: Option<NonZeroU32>,
    /// Does wrong now and then, so that the judge must report it.
    #[arg(long, value_enum, num_args = 0..=1, default_missing_value = "all")]
    pub(crate) sabotage: Option<Sabotage>,
}

#[derive(Debug, Args)]
pub(crate) struct Deliver {
    #[command(flatten)]
    pub(crate) place: Place,
    #[command(flatten)]
    pub(crate) load: Load,
    /// Where the answers are written, one line each; made anew.
    #[arg(long)]
    pub(crate) journal: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Judge {
    #[command(flatten)]
    pub(crate) place: Place,
    #[command(flatten)]
    pub(crate) size: Size,
    /// What `deliver` wrote.
    #[arg(long)]
    pub(crate) journal: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) place: Place,
    #[command(flatten)]
    pub(crate) load: Load,
    /// Keep the journal here instead of in a folder that is removed.
    #[arg(long)]
    pub(crate) journal: Option<PathBuf>,
}
