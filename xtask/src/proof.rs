//! `cargo xtask deliver` and `cargo xtask soak`: whole runs, judged from outside.

use std::io;

use clap::Args;

use crate::cargo::cargo;
use crate::databases::{Database, Databases};
use crate::stop::Stop;

/// Which databases, and what to pass on.
#[derive(Args)]
pub(crate) struct Proof {
    /// Only on this database; may be repeated.
    #[arg(long, value_enum)]
    only: Vec<Database>,
    /// Build without optimisation, which is sooner ready for a short run.
    #[arg(long)]
    dev: bool,
    /// Passed on to the program.
    #[arg(last = true)]
    rest: Vec<String>,
}

impl Proof {
    pub(crate) fn deliver(&self) -> io::Result<()> {
        self.each("dev", &["deliver", "--"])
    }

    pub(crate) fn soak(&self) -> io::Result<()> {
        let profile = if self.dev { "dev" } else { "release" };
        self.each(profile, &["onceonly-soak", "--", "run"])
    }

    fn each(&self, profile: &str, program: &[&str]) -> io::Result<()> {
        let stop = Stop::register()?;
        let mut wanted = self.only.clone();
        if wanted.is_empty() {
            wanted = vec![Database::Sqlite, Database::Postgres, Database::Mysql];
        }
        if wanted.contains(&Database::Memory) {
            let error = "nothing outside the process could judge the memory store";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, error));
        }
        let databases = Databases::start(&wanted)?;
        for database in wanted {
            let mut command = cargo(&["run", "--quiet", "--profile", profile, "-p"]);
            command
                .args(program)
                .args(["--database", database.name()])
                .args(&self.rest);
            databases.give(&mut command);
            stop.run(&mut command)?;
        }
        Ok(())
    }
}
