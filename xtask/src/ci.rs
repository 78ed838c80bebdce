//! `cargo xtask ci`: everything about the code that isn't a test.

use std::env;
use std::io;
use std::process::Command;

use crate::cargo::cargo;
use crate::stop::{Stop, output};
use crate::workspace::{Version, Workspace};

type Step = fn(&Stop, &Workspace) -> io::Result<()>;

/// The steps, in their order: the cheap ones first.
const STEPS: [Step; 7] = [
    rust_version,
    formatting,
    lints,
    documentation,
    licences,
    advisories,
    packages,
];

pub(crate) fn run() -> io::Result<()> {
    let stop = Stop::register()?;
    let workspace = Workspace::read()?;
    STEPS.iter().try_for_each(|step| step(&stop, &workspace))
}

/// The toolchain that runs the gate is the one that is promised, so the promise is tested; and no
/// dependency asks for a newer one.
fn rust_version(_: &Stop, workspace: &Workspace) -> io::Result<()> {
    let promised = env!("CARGO_PKG_RUST_VERSION");
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let answer = output(Command::new(rustc).arg("--version"))?;
    let answer = String::from_utf8_lossy(&answer.stdout);
    let running = answer.split(' ').nth(1).unwrap_or_default();
    let Some(version) = Version::parse(promised).filter(|it| Version::parse(running) == Some(*it))
    else {
        return Err(io::Error::other(format!(
            "Cargo.toml promises rust-version {promised}, and the gate runs {running}: test the \
             promised one, or promise the tested one"
        )));
    };
    let newer = workspace.newer_than(version);
    if !newer.is_empty() {
        return Err(io::Error::other(format!(
            "these ask for more than rust-version {promised}: {}",
            newer.join(", ")
        )));
    }
    eprintln!(
        "xtask: rust-version {promised} is what runs ({running}), and enough for all dependencies"
    );
    Ok(())
}

fn formatting(stop: &Stop, _: &Workspace) -> io::Result<()> {
    stop.run(&mut cargo(&["fmt", "--all", "--check"]))
}

/// All features, and then what is published without any.
fn lints(stop: &Stop, workspace: &Workspace) -> io::Result<()> {
    let all = ["clippy", "--workspace", "--all-targets", "--all-features"];
    stop.run(cargo(&all).args(["--", "-D", "warnings"]))?;
    let mut bare = cargo(&["clippy", "--no-default-features"]);
    for name in workspace.published() {
        bare.args(["-p", name]);
    }
    stop.run(bare.args(["--", "-D", "warnings"]))
}

fn documentation(stop: &Stop, _: &Workspace) -> io::Result<()> {
    let doc = ["doc", "--workspace", "--no-deps", "--all-features"];
    stop.run(cargo(&doc).env("RUSTDOCFLAGS", "-D warnings"))
}

fn licences(stop: &Stop, _: &Workspace) -> io::Result<()> {
    stop.run(&mut cargo(&[
        "deny", "check", "licenses", "bans", "sources",
    ]))
}

/// The database of advisories is on the network; where it can't be reached, that is said.
fn advisories(stop: &Stop, _: &Workspace) -> io::Result<()> {
    stop.check()?;
    eprintln!("xtask: cargo deny check advisories");
    let answer = output(&mut cargo(&["deny", "check", "advisories"]))?;
    if answer.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&answer.stderr);
    if said.contains("failed to fetch advisory database") {
        eprintln!("xtask: advisories NOT checked: their database can't be reached from here");
        return Ok(());
    }
    Err(io::Error::other(format!("advisories:\n{said}")))
}

/// What would be published has all of its files and metadata. Building it again from the packages
/// would only repeat the lints.
fn packages(stop: &Stop, workspace: &Workspace) -> io::Result<()> {
    let mut package = cargo(&["package", "--no-verify", "--allow-dirty", "--quiet"]);
    for name in workspace.published() {
        package.args(["-p", name]);
    }
    stop.run(&mut package)
}
