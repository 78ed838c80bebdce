//! `cargo xtask mutants`: every mistake of the catalogue must fail the suite.

mod catalogue;
mod matrix;
mod planting;
mod trial;

use std::env;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::databases::{Database, Databases};
use crate::stop::Stop;
use catalogue::{Catalogue, Mutant};
use matrix::Matrix;
use trial::{Suite, Verdict};

/// Plant the mistakes of faulty-stores/mutants one at a time, and see which cases catch them.
///
/// Without an option the whole suite runs against each; the variables are those of
/// `cargo xtask test`. What a mistake made the suite print is in target/mutants/logs.
#[derive(Args)]
pub(crate) struct Mutants {
    /// Only this database's mistakes; may be repeated.
    #[arg(long, value_enum)]
    only: Vec<Database>,
    /// Run only a few of the cases that the matrix names for each mistake.
    #[arg(long, conflicts_with = "bless")]
    quick: bool,
    /// Write the matrix anew.
    #[arg(long)]
    bless: bool,
    /// Only mistakes of these names.
    names: Vec<String>,
}

/// How many cases of the matrix a quick run tries.
const QUICK: usize = 3;

impl Mutants {
    pub(crate) fn run(self) -> io::Result<()> {
        let stop = Stop::register()?;
        let root = root()?;
        let wanted = if self.only.is_empty() {
            Database::ALL.to_vec()
        } else {
            self.only.clone()
        };
        let databases = Databases::start(&wanted)?;
        let mut survivors = Vec::new();
        let mut count = 0;
        for database in wanted {
            let catalogue = Catalogue::read(&root, database)?;
            let place = root.join("target/mutants");
            planting::plant(&root, &place.join("tree"), &catalogue)?;
            let suite = Suite::build(&place, &catalogue, &databases, &stop)?;
            let mut matrix = Matrix::read(&root, database)?;
            if !self.quick {
                sound(&suite, &catalogue)?;
            }
            for mutant in self.chosen(&catalogue) {
                count += 1;
                let verdict = if self.quick {
                    let mut cases = matrix.cases(&mutant.name)?;
                    cases.sort_by_key(|case| !mutant.rules.iter().any(|rule| is_of(case, rule)));
                    cases.truncate(QUICK);
                    suite.run(Some(&mutant.name), &[&["--exact"], &cases[..]].concat())?
                } else {
                    suite.run(Some(&mutant.name), &[&catalogue.within])?
                };
                let lacking = lacking(mutant, &verdict, self.quick);
                report(database, mutant, &verdict, &lacking);
                if !lacking.is_empty() {
                    survivors.push(mutant.name.clone());
                }
                matrix.note(&mutant.name, &verdict);
            }
            if self.bless {
                matrix.write(&catalogue)?;
            }
        }
        if survivors.is_empty() {
            println!("mutants: {count}, survivors: 0");
            return Ok(());
        }
        Err(io::Error::other(format!(
            "the suite has a bug: {} of {count} mistakes were not caught by the rules that they \
             break: {}",
            survivors.len(),
            survivors.join(", ")
        )))
    }

    fn chosen<'a>(&'a self, catalogue: &'a Catalogue) -> impl Iterator<Item = &'a Mutant> {
        let all = catalogue.mutants.iter();
        all.filter(|mutant| self.names.is_empty() || self.names.contains(&mutant.name))
    }
}

/// Without a mistake the same build passes everything.
fn sound(suite: &Suite<'_>, catalogue: &Catalogue) -> io::Result<()> {
    let verdict = suite.run(None, &[&catalogue.within])?;
    if verdict.failed.is_empty() && !verdict.died && verdict.passed > 0 {
        println!("no mistake: {} cases passed", verdict.passed);
        return Ok(());
    }
    Err(io::Error::other(format!(
        "without a mistake these fail: {:?}",
        verdict.failed
    )))
}

/// The rules that should have caught it and did not.
fn lacking(mutant: &Mutant, verdict: &Verdict, quick: bool) -> Vec<String> {
    let caught = |rule: &String| verdict.failed.iter().any(|case| is_of(case, rule));
    if quick {
        let caught = !verdict.failed.is_empty() || verdict.died;
        return if caught {
            Vec::new()
        } else {
            mutant.rules.clone()
        };
    }
    let rules = mutant.rules.iter();
    rules.filter(|rule| !caught(rule)).cloned().collect()
}

fn is_of(case: &str, rule: &str) -> bool {
    let rest = short(case).strip_prefix(rule);
    rest.is_some_and(|rest| rest.starts_with('_'))
}

fn short(case: &str) -> &str {
    case.rsplit("::").next().unwrap_or(case)
}

fn report(database: Database, mutant: &Mutant, verdict: &Verdict, lacking: &[String]) {
    let state = if lacking.is_empty() {
        "caught"
    } else {
        "SURVIVED"
    };
    let cases: Vec<&str> = verdict.failed.iter().map(|case| short(case)).collect();
    let died = if verdict.died {
        ", the process died"
    } else {
        ""
    };
    println!(
        "{state}: {}/{} ({}): {} cases{died}: {}",
        database.name(),
        mutant.name,
        mutant.mistake,
        cases.len(),
        cases.join(" ")
    );
}

fn root() -> io::Result<PathBuf> {
    let manifest = env::var_os("CARGO_MANIFEST_DIR")
        .ok_or_else(|| io::Error::other("run it as `cargo xtask mutants`"))?;
    Path::new(&manifest)
        .parent()
        .map(Path::to_owned)
        .ok_or_else(|| io::Error::other("xtask lies in the workspace"))
}
