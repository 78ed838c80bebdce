//! Lists that a person approved, kept in a file.

use std::fmt::Display;
use std::{env, fs};

/// Compares `lines` with an approved file, or writes the file when ONCEONLY_BLESS is set.
///
/// # Panics
///
/// When they differ, or the file can't be read or written.
#[doc(hidden)]
#[allow(clippy::panic, reason = "this is the body of a test")]
pub fn approve(file: &str, lines: &[impl Display]) {
    let seen: String = lines.iter().map(|line| format!("{line}\n")).collect();
    if env::var_os("ONCEONLY_BLESS").is_some() {
        if let Err(error) = fs::write(file, seen) {
            panic!("writing {file}: {error}");
        }
        return;
    }
    let approved = match fs::read_to_string(file) {
        Ok(approved) => approved,
        Err(error) => panic!("reading {file}: {error} (ONCEONLY_BLESS=1 writes it)"),
    };
    assert!(
        seen == approved,
        "{file} differs (ONCEONLY_BLESS=1 writes it)\n{}",
        difference(&approved, &seen)
    );
}

fn difference(approved: &str, seen: &str) -> String {
    let gone = approved
        .lines()
        .filter(|line| !seen.lines().any(|other| other == *line));
    let new = seen
        .lines()
        .filter(|line| !approved.lines().any(|other| other == *line));
    let mut lines: Vec<String> = gone.map(|line| format!("- {line}")).collect();
    lines.extend(new.map(|line| format!("+ {line}")));
    if lines.is_empty() {
        lines.push("the order differs".to_owned());
    }
    lines.join("\n")
}
