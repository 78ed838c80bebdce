//! The catalogue of mistakes in `faulty-stores/mutants`.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use serde::Deserialize;

use crate::databases::Database;

/// Where the catalogue and the matrix are.
pub(crate) const FOLDER: &str = "faulty-stores/mutants";

/// The mistakes that the suite of one database has to catch.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Catalogue {
    /// The package whose tests are the suite.
    pub(crate) package: String,
    /// The test target that is the suite.
    pub(crate) suite: String,
    /// Only cases whose path begins so.
    #[serde(default)]
    pub(crate) within: String,
    #[serde(rename = "mutant")]
    pub(crate) mutants: Vec<Mutant>,
}

/// One mistake.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mutant {
    pub(crate) name: String,
    /// What is wrong, in a line.
    pub(crate) mistake: String,
    /// At least one case of each of these rules must catch it.
    pub(crate) rules: Vec<String>,
    pub(crate) edits: Vec<Edit>,
}

/// One place of a mistake.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Edit {
    pub(crate) file: String,
    /// An expression or statements, found once in the file.
    pub(crate) find: String,
    /// What runs instead. With `PLANTED` in it, it takes the place of `find` as it is, and
    /// `PLANTED` says whether the mistake is to be made; it may go before `find` so.
    pub(crate) replace: String,
}

impl Catalogue {
    pub(crate) fn read(root: &Path, database: Database) -> io::Result<Self> {
        let file = format!("{FOLDER}/{}.toml", database.name());
        let text = fs::read_to_string(root.join(&file))?;
        let catalogue: Self =
            toml::from_str(&text).map_err(|error| io::Error::other(format!("{file}: {error}")))?;
        let names: BTreeSet<&str> = catalogue.names().collect();
        if names.len() != catalogue.mutants.len() {
            return Err(io::Error::other(format!("{file}: two mutants of one name")));
        }
        Ok(catalogue)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.mutants.iter().map(|mutant| mutant.name.as_str())
    }
}
