//! What Cargo.toml and Cargo.lock say.

use std::io;

use serde_json::Value;

use crate::cargo::cargo;
use crate::stop::output;

/// The packages of the workspace and of everything it depends on.
pub(crate) struct Workspace {
    packages: Vec<Package>,
}

struct Package {
    name: String,
    is_member: bool,
    is_published: bool,
    rust_version: Option<Version>,
}

/// Major and minor version of Rust.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version(u32, u32);

impl Version {
    /// Reads `1.95` and `1.95.0`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split('.').map(|number| number.parse().ok());
        Some(Self(numbers.next()??, numbers.next()??))
    }
}

impl Workspace {
    pub(crate) fn read() -> io::Result<Self> {
        let metadata = ["metadata", "--format-version", "1", "--locked"];
        let output = output(&mut cargo(&metadata))?;
        if !output.status.success() {
            let message = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(io::Error::other(message));
        }
        let metadata: Value = serde_json::from_slice(&output.stdout)?;
        let members = metadata["workspace_members"].as_array();
        let packages = metadata["packages"].as_array().into_iter().flatten();
        let packages = packages.map(|package| Package {
            name: package["name"].as_str().unwrap_or_default().to_owned(),
            is_member: members.is_some_and(|members| members.contains(&package["id"])),
            // Null when any registry may have it, empty with `publish = false`.
            is_published: package["publish"].is_null(),
            rust_version: package["rust_version"].as_str().and_then(Version::parse),
        });
        Ok(Self {
            packages: packages.collect(),
        })
    }

    /// The crates that are ours to publish.
    pub(crate) fn published(&self) -> impl Iterator<Item = &str> {
        self.packages
            .iter()
            .filter(|package| package.is_member && package.is_published)
            .map(|package| package.name.as_str())
    }

    /// Whatever asks for a newer Rust than this.
    pub(crate) fn newer_than(&self, version: Version) -> Vec<&str> {
        self.packages
            .iter()
            .filter(|package| package.rust_version > Some(version))
            .map(|package| package.name.as_str())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Version;

    #[test]
    fn versions_compare_by_number_and_ignore_the_patch() {
        assert!(Version::parse("1.95.0") == Version::parse("1.95"));
        assert!(Version::parse("1.100") > Version::parse("1.95"));
        assert!(Version::parse("nightly").is_none());
    }
}
