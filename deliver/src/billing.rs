//! A billing process of this run's own.

use std::env;
use std::error::Error;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::provider::SECRET;

/// Billing, on a free port. Dropping it kills it.
pub(crate) struct Billing {
    child: Child,
    addr: SocketAddr,
}

impl Billing {
    /// Builds and starts it; returns when it listens.
    pub(crate) fn start(database_url: &str, fail_first: u8) -> Result<Self, Box<dyn Error>> {
        let mut child = Command::new(build()?)
            .env("DATABASE_URL", database_url)
            .env("BIND", "127.0.0.1:0")
            .env("GITHUB_WEBHOOK_SECRET", SECRET)
            .env("BILLING_FAIL_FIRST", fail_first.to_string())
            .env("RUST_LOG", "error")
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.take().ok_or("billing has no output")?;
        let mut billing = Self {
            child,
            addr: SocketAddr::from(([127, 0, 0, 1], 0)),
        };
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let address = line
            .split_once("http://")
            .and_then(|(_, rest)| rest.split(',').next());
        billing.addr = address
            .ok_or("billing did not start, see above")?
            .parse()
            .map_err(|error| format!("billing listens on {address:?}: {error}"))?;
        Ok(billing)
    }

    pub(crate) const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Stops it as an operator does.
    pub(crate) fn stop(mut self) -> Result<(), Box<dyn Error>> {
        kill(Pid::from_raw(self.child.id().try_into()?), Signal::SIGTERM)?;
        let status = self.child.wait()?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("billing ended with {status}").into())
        }
    }
}

impl Drop for Billing {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The path of the program, which cargo names in one of its messages.
fn build() -> Result<String, Box<dyn Error>> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args(["build", "--quiet", "-p", "billing", "--message-format=json"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stderr(Stdio::inherit())
        .output()?;
    let messages = String::from_utf8(built.stdout)?;
    let program = messages.lines().find_map(|message| {
        let message: serde_json::Value = serde_json::from_str(message).ok()?;
        Some(message["executable"].as_str()?.to_owned())
    });
    Ok(program.ok_or("billing was not built")?)
}
