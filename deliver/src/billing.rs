//! A billing process of this run's own.

use std::env;
use std::error::Error;
use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};

use rand::distr::{Alphanumeric, SampleString};

/// What GitHub's deliveries are signed with in these runs.
pub(crate) const SECRET: &str = "deliver signs with this";

/// Billing, on a free port. Dropping it kills it.
pub(crate) struct Billing {
    child: Child,
    addr: SocketAddr,
    _stdout: BufReader<ChildStdout>,
}

impl Billing {
    /// Builds and starts it; returns when it listens.
    pub(crate) fn start(database_url: &str, fail_first: u8) -> Result<Self, Box<dyn Error>> {
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let folder = env!("CARGO_MANIFEST_DIR");
        let built = Command::new(cargo)
            .args(["build", "--quiet", "-p", "billing", "--message-format=json"])
            .current_dir(folder)
            .stderr(Stdio::inherit())
            .output()?;
        let messages = String::from_utf8(built.stdout)?;
        let program = messages
            .lines()
            .find_map(executable)
            .ok_or("billing was not built")?;
        let mut child = Command::new(program)
            .env("DATABASE_URL", database_url)
            .env("BIND", "127.0.0.1:0")
            .env("GITHUB_WEBHOOK_SECRET", SECRET)
            .env("BILLING_FAIL_FIRST", fail_first.to_string())
            .env("RUST_LOG", "error")
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.take().ok_or("billing has no output")?;
        let (mut stdout, mut line) = (BufReader::new(stdout), String::new());
        stdout.read_line(&mut line)?;
        let address = line
            .split_once("http://")
            .and_then(|(_, rest)| rest.split(',').next());
        match address.and_then(|address| address.parse().ok()) {
            Some(addr) => Ok(Self {
                child,
                addr,
                _stdout: stdout,
            }),
            None => {
                child.kill()?;
                child.wait()?;
                Err(io::Error::other("billing did not start, see above").into())
            }
        }
    }

    pub(crate) const fn addr(&self) -> SocketAddr {
        self.addr
    }
}

impl Drop for Billing {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The path in cargo's message about a program that it built.
fn executable(message: &str) -> Option<String> {
    let message: serde_json::Value = serde_json::from_str(message).ok()?;
    Some(message["executable"].as_str()?.to_owned())
}

/// A name that no other run has.
pub(crate) fn unique(prefix: &str) -> String {
    let random = Alphanumeric
        .sample_string(&mut rand::rng(), 12)
        .to_lowercase();
    format!("{prefix}_{random}")
}
