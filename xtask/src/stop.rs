//! Running commands, and stopping them when this is told to stop.

use std::io::{self, IsTerminal};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

const POLL: Duration = Duration::from_millis(50);
const STOPPED_WITHIN: Duration = Duration::from_secs(5);

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

    pub(crate) fn wait(&self) {
        while !self.is_set() {
            thread::sleep(POLL);
        }
    }

    /// An error once this was told to stop.
    pub(crate) fn check(&self) -> io::Result<()> {
        if self.is_set() {
            return Err(io::Error::new(io::ErrorKind::Interrupted, "stopped"));
        }
        Ok(())
    }

    /// Runs a command to its end, or stops it and its children when told to stop.
    pub(crate) fn run(&self, command: &mut Command) -> io::Result<()> {
        self.check()?;
        eprintln!("xtask: {}", line(command));
        // At a terminal Ctrl-C reaches the children by itself, and a program may want the keyboard;
        // elsewhere the signal is for this process alone, so it is passed on to a group.
        let group = !io::stdin().is_terminal();
        if group {
            command.process_group(0);
        }
        let mut child = command
            .spawn()
            .map_err(|error| cannot_start(command, &error))?;
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if self.is_set() {
                end(&mut child, group);
                break child.wait()?;
            }
            thread::sleep(POLL);
        };
        self.check()?;
        if status.success() {
            return Ok(());
        }
        Err(io::Error::other(format!(
            "`{}` failed: {status}",
            line(command)
        )))
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Runs a short command for its output.
pub(crate) fn output(command: &mut Command) -> io::Result<Output> {
    command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| cannot_start(command, &error))
}

fn end(child: &mut Child, group: bool) {
    let Ok(id) = i32::try_from(child.id()) else {
        return;
    };
    let target = Pid::from_raw(if group { -id } else { id });
    let _ = kill(target, Signal::SIGTERM);
    let deadline = Instant::now() + STOPPED_WITHIN;
    while matches!(child.try_wait(), Ok(None)) && Instant::now() < deadline {
        thread::sleep(POLL);
    }
    let _ = kill(target, Signal::SIGKILL);
}

fn cannot_start(command: &Command, error: &io::Error) -> io::Error {
    io::Error::new(
        error.kind(),
        format!("can't run `{}`: {error}", line(command)),
    )
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
