//! Running cargo, and stopping it when this is told to stop.

use std::env;
use std::io;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Set by Ctrl-C and its like. Registered before any server starts, so that every path out of
/// `main` drops the servers.
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    pub(crate) fn register() -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&stop))?;
        }
        Ok(Self(stop))
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn wait(&self) {
        while !self.is_set() {
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// Runs a command to its end, or kills it when told to stop.
    pub(crate) fn run(&self, command: &mut Command) -> io::Result<()> {
        eprintln!("xtask: {}", line(command));
        let mut child = command.spawn()?;
        let status: ExitStatus = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if self.is_set() {
                let _ = child.kill();
                let _ = child.wait();
                return Err(io::Error::other("stopped"));
            }
            thread::sleep(Duration::from_millis(50));
        };
        if status.success() {
            Ok(())
        } else {
            Err(io::Error::other(format!(
                "`{}` failed: {status}",
                line(command)
            )))
        }
    }
}

/// The cargo that runs this.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments);
    command
}

fn line(command: &Command) -> String {
    let program = command.get_program().to_string_lossy();
    let program = program.rsplit('/').next().unwrap_or_default().to_owned();
    let words = command
        .get_args()
        .map(|word| word.to_string_lossy().into_owned());
    std::iter::once(program)
        .chain(words)
        .collect::<Vec<_>>()
        .join(" ")
}
