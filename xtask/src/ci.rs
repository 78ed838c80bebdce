//! `cargo xtask ci`: everything about the code that isn't a test.

use std::env;
use std::io;
use std::process::Command;

use crate::cargo::{Stop, cargo};

/// The crates that are published.
const PUBLISHED: [&str; 6] = [
    "onceonly",
    "onceonly-migrations",
    "onceonly-conformance",
    "onceonly-sqlite",
    "onceonly-postgres",
    "onceonly-mysql",
];

pub(crate) fn run() -> io::Result<()> {
    let stop = Stop::register()?;
    rust_version()?;
    stop.run(&mut cargo(&["fmt", "--all", "--check"]))?;
    let clippy = ["clippy", "--workspace", "--all-targets", "--all-features"];
    stop.run(cargo(&clippy).args(["--", "-D", "warnings"]))?;
    for alone in PUBLISHED {
        stop.run(
            cargo(&["clippy", "--no-default-features", "-p", alone]).args(["--", "-D", "warnings"]),
        )?;
    }
    let doc = ["doc", "--workspace", "--no-deps", "--all-features"];
    stop.run(cargo(&doc).env("RUSTDOCFLAGS", "-D warnings"))?;
    stop.run(&mut cargo(&[
        "deny", "check", "licenses", "bans", "sources",
    ]))?;
    advisories(&stop);
    let mut package = cargo(&["package", "--no-verify", "--allow-dirty"]);
    for crate_name in PUBLISHED {
        package.args(["-p", crate_name]);
    }
    stop.run(&mut package)
}

/// The toolchain that runs the gate is the one that is promised, so the promise is tested.
fn rust_version() -> io::Result<()> {
    let promised = env!("CARGO_PKG_RUST_VERSION");
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("--version").output()?;
    let version = String::from_utf8_lossy(&output.stdout);
    let running = version.split(' ').nth(1).unwrap_or_default();
    if running.starts_with(&format!("{promised}.")) {
        eprintln!("xtask: rust-version {promised} is what runs ({running})");
        Ok(())
    } else {
        Err(io::Error::other(format!(
            "Cargo.toml promises rust-version {promised}, and the gate runs {running}: test the \
             promised one, or promise the tested one"
        )))
    }
}

/// The database of advisories is on the network; where it can't be reached, that is said.
fn advisories(stop: &Stop) {
    if let Err(error) = stop.run(&mut cargo(&["deny", "check", "advisories"])) {
        eprintln!("xtask: advisories NOT checked or found some, see above: {error}");
    }
}
