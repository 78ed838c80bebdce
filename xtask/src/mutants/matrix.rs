//! Which cases catch which mistake, as a file of the repository.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::catalogue::{Catalogue, FOLDER};
use super::trial::Verdict;
use crate::databases::Database;

/// `mistake: case, case, …`, one line per mistake of a database.
pub(crate) struct Matrix {
    file: PathBuf,
    lines: BTreeMap<String, Vec<String>>,
}

impl Matrix {
    pub(crate) fn read(root: &Path, database: Database) -> io::Result<Self> {
        let file = root.join(format!("{FOLDER}/{}.matrix.txt", database.name()));
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let lines = text
            .lines()
            .filter_map(|line| line.split_once(": "))
            .map(|(name, cases)| {
                let cases = cases.split(", ").map(str::to_owned).collect();
                (name.to_owned(), cases)
            })
            .collect();
        Ok(Self { file, lines })
    }

    /// The cases that catch a mistake.
    pub(crate) fn cases(&self, mutant: &str) -> io::Result<Vec<&str>> {
        let cases = self.lines.get(mutant).ok_or_else(|| {
            io::Error::other(format!(
                "{} lacks `{mutant}`: run `cargo xtask mutants --bless {mutant}`",
                self.file.display()
            ))
        })?;
        Ok(cases.iter().map(String::as_str).collect())
    }

    pub(crate) fn note(&mut self, mutant: &str, verdict: &Verdict) {
        let cases = verdict.failed.iter().cloned().collect();
        self.lines.insert(mutant.to_owned(), cases);
    }

    /// In the order of the catalogue.
    pub(crate) fn write(&self, catalogue: &Catalogue) -> io::Result<()> {
        let lines = catalogue
            .names()
            .filter_map(|name| Some(format!("{name}: {}\n", self.lines.get(name)?.join(", "))));
        fs::write(&self.file, lines.collect::<String>())
    }
}
