//! A copy of the workspace with every mistake in it, of which a variable chooses one at run time.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::catalogue::{Catalogue, Edit};
use crate::stop::output;

/// The variable that holds the name of the mistake to make.
pub(crate) const VARIABLE: &str = "ONCEONLY_MUTANT";

/// Copies the workspace to `tree`, and plants the mistakes of `catalogue` there.
///
/// One build serves all of them. What is the same as in the last run is not written again, so that
/// the build is as short as it can be.
pub(crate) fn plant(root: &Path, tree: &Path, catalogue: &Catalogue) -> io::Result<()> {
    let mut sites: BTreeMap<&str, Vec<(&str, &Edit)>> = BTreeMap::new();
    for mutant in &catalogue.mutants {
        for edit in &mutant.edits {
            let planted = sites.entry(&edit.file).or_default();
            planted.push((&mutant.name, edit));
        }
    }
    let faulty: BTreeSet<String> = sites.keys().map(|file| library(file)).collect();
    for file in files(root)? {
        let Some(name) = file.to_str() else { continue };
        let from = root.join(&file);
        let mut text = match fs::read(&from) {
            Ok(bytes) => bytes,
            // Deleted, but not yet for git; or a link to a folder.
            Err(_) => continue,
        };
        if let Some(sites) = sites.remove(name) {
            text = planted(name, &String::from_utf8_lossy(&text), &sites)?.into_bytes();
        }
        if faulty.contains(name) {
            text = chooser(&String::from_utf8_lossy(&text)).into_bytes();
        }
        write_if_new(&tree.join(&file), &text)?;
    }
    match sites.keys().next() {
        None => Ok(()),
        Some(file) => Err(io::Error::other(format!("the catalogue names {file}"))),
    }
}

/// Whatever git would commit.
fn files(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut git = Command::new("git");
    git.current_dir(root).args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]);
    let listed = output(&mut git)?;
    if !listed.status.success() {
        let message = String::from_utf8_lossy(&listed.stderr).into_owned();
        return Err(io::Error::other(message));
    }
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    Ok(listed
        .split('\0')
        .filter(|name| !name.is_empty())
        .map(PathBuf::from)
        .collect())
}

/// The root of the crate that a file belongs to.
fn library(file: &str) -> String {
    let folder = file.split("/src/").next().unwrap_or_default();
    format!("{folder}/src/lib.rs")
}

fn chooser(library: &str) -> String {
    format!(
        "#![allow(warnings)]\n{library}\n\
         pub(crate) fn planted(name: &str) -> bool {{\n    \
         std::env::var_os(\"{VARIABLE}\").is_some_and(|chosen| chosen == name)\n}}\n"
    )
}

fn planted(file: &str, text: &str, sites: &[(&str, &Edit)]) -> io::Result<String> {
    let mut places: Vec<(Range<usize>, &str, &str)> = Vec::new();
    for (mutant, edit) in sites {
        let found: Vec<usize> = text
            .match_indices(&edit.find)
            .map(|(start, _)| start)
            .collect();
        let [start] = found[..] else {
            return Err(io::Error::other(format!(
                "{mutant}: found {} times in {file}, expected once: {}",
                found.len(),
                edit.find
            )));
        };
        places.push((start..start + edit.find.len(), mutant, &edit.replace));
    }
    places.sort_by_key(|(range, ..)| range.start);
    let mut planted = String::new();
    let mut done = 0;
    for here in places.chunk_by(|one, other| one.0 == other.0) {
        let range = here[0].0.clone();
        let alone = |replace: &str| {
            let original = &text[range.clone()];
            replace.contains("PLANTED") && !replace.ends_with(original)
        };
        if range.start < done || (here.len() > 1 && here.iter().any(|place| alone(place.2))) {
            return Err(io::Error::other(format!(
                "{}: its place in {file} is another mutant's too",
                here[0].1
            )));
        }
        planted.push_str(&text[done..range.start]);
        planted.push_str(&alternatives(&text[range.clone()], here));
        done = range.end;
    }
    planted.push_str(&text[done..]);
    Ok(planted)
}

fn alternatives(original: &str, mutants: &[(Range<usize>, &str, &str)]) -> String {
    let mut before = String::new();
    let mut branches = String::new();
    for (_, mutant, replace) in mutants {
        let chosen = format!("crate::planted({mutant:?})");
        if replace.contains("PLANTED") {
            let text = replace.replace("PLANTED", &chosen);
            match text.strip_suffix(original) {
                Some(prefix) => before.push_str(prefix),
                None => return text,
            }
        } else {
            branches.push_str(&format!("if {chosen} {{ {replace} }} else "));
        }
    }
    if branches.is_empty() {
        return before + original;
    }
    let text = format!("{before}{branches}{{ {original} }}");
    if original.trim_end().ends_with([';', '}']) {
        text
    } else {
        format!("({text})")
    }
}

fn write_if_new(to: &Path, bytes: &[u8]) -> io::Result<()> {
    if fs::read(to).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(to, bytes)
}

#[cfg(test)]
mod tests {
    use super::{Edit, planted};

    fn edit(find: &str, replace: &str) -> Edit {
        Edit {
            file: String::new(),
            find: find.to_owned(),
            replace: replace.to_owned(),
        }
    }

    #[test]
    fn expressions_and_statements_are_chosen_at_run_time() {
        let (a, b, c) = (edit("x + 1", "x"), edit("x + 1", "2"), edit("go();", ""));
        let text = planted("f", "go(); x + 1", &[("a", &a), ("b", &b), ("c", &c)]);
        assert_eq!(
            text.ok().as_deref(),
            Some(
                "if crate::planted(\"c\") {  } else { go(); } (if crate::planted(\"a\") { x } \
                 else if crate::planted(\"b\") { 2 } else { x + 1 })"
            )
        );
    }

    #[test]
    fn a_place_that_is_gone_or_not_the_only_one_is_an_error() {
        for text in ["nothing", "x x"] {
            assert!(planted("f", text, &[("a", &edit("x", "y"))]).is_err());
        }
    }
}
