//! Cargo, as the user would run it.

use std::env;
use std::process::Command;

/// The cargo that runs this.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments);
    forget_this_package(&mut command);
    command
}

/// Takes away the variables that `cargo run` sets for xtask: a build script that reads one of them
/// would run again, and rebuild all that depends on it, whenever xtask and the user take turns.
pub(crate) fn forget_this_package(command: &mut Command) {
    const PREFIXES: [&str; 4] = [
        "CARGO_PKG_",
        "CARGO_MANIFEST_",
        "CARGO_BIN_",
        "CARGO_CRATE_",
    ];
    for (name, _) in env::vars_os() {
        if let Some(known) = name.to_str()
            && PREFIXES.iter().any(|prefix| known.starts_with(prefix))
        {
            command.env_remove(name);
        }
    }
}
