//! One server process, stopped with its value or with this process.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, User};

use crate::binaries;

/// A running server.
#[derive(Debug)]
pub struct Process {
    child: Child,
    log: PathBuf,
    stop: Signal,
    /// The kernel sends the parent-death signal when the *thread* that started the child ends, so
    /// that thread lives until this is dropped.
    _starter: Sender<()>,
}

impl Process {
    /// Starts `program` in the foreground and waits until `ready`.
    pub(crate) fn start(
        program: &Path,
        arguments: &[String],
        user: Option<&User>,
        log: &Path,
        stop: Signal,
        ready: impl Fn() -> bool,
    ) -> io::Result<Self> {
        let mut command = as_user(program, user, Some("TERM"));
        command.args(arguments).stdin(Stdio::null());
        command.stdout(File::options().create(true).append(true).open(log)?);
        command.stderr(File::options().create(true).append(true).open(log)?);
        let (child, starter) = spawn_in_own_thread(command)?;
        let mut process = Self {
            child,
            log: log.to_owned(),
            stop,
            _starter: starter,
        };
        let deadline = Instant::now() + Duration::from_secs(60);
        while !ready() {
            if let Some(status) = process.child.try_wait()? {
                return Err(process.failure(program, &format!("ended with {status}")));
            }
            if Instant::now() > deadline {
                return Err(process.failure(program, "was not ready within 60 s"));
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(process)
    }

    /// Kills it as `kill -9` does and waits until it is gone.
    pub(crate) fn kill(&mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait().map(drop)
    }

    fn failure(&self, program: &Path, what: &str) -> io::Error {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let tail: Vec<&str> = log.lines().rev().take(15).collect();
        let tail: Vec<&str> = tail.into_iter().rev().collect();
        io::Error::other(format!(
            "{} {what}:\n{}",
            program.display(),
            tail.join("\n")
        ))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let pid = i32::try_from(self.child.id()).map(Pid::from_raw);
        if let Ok(pid) = pid
            && matches!(self.child.try_wait(), Ok(None))
        {
            let _ = kill(pid, self.stop);
            let deadline = Instant::now() + Duration::from_secs(5);
            while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
                thread::sleep(Duration::from_millis(20));
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn_in_own_thread(mut command: Command) -> io::Result<(Child, Sender<()>)> {
    let (alive, until_dropped) = mpsc::channel::<()>();
    let (give, child) = mpsc::channel();
    thread::Builder::new()
        .name("server-starter".into())
        .spawn(move || {
            let _ = give.send(command.spawn());
            let _ = until_dropped.recv();
        })?;
    let child = child.recv().map_err(io::Error::other)??;
    Ok((child, alive))
}

/// A command that runs as `user` (root drops its privileges) and, if asked, dies with its parent.
///
/// Changing the user clears the parent-death signal, so it is set after that.
pub(crate) fn as_user(program: &Path, user: Option<&User>, death_signal: Option<&str>) -> Command {
    let setpriv = binaries::find("setpriv").ok();
    let mut words: Vec<String> = Vec::new();
    if let (Some(setpriv), Some(user)) = (&setpriv, user) {
        words.push(setpriv.display().to_string());
        words.push(format!("--reuid={}", user.uid));
        words.push(format!("--regid={}", user.gid));
        words.push("--clear-groups".into());
    }
    if let (Some(setpriv), Some(signal)) = (&setpriv, death_signal) {
        words.push(setpriv.display().to_string());
        words.push(format!("--pdeathsig={signal}"));
    }
    words.push(program.display().to_string());
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).current_dir("/");
    command
}

/// Runs a command to its end; its output is in the error when it fails.
pub(crate) fn run(command: &mut Command) -> io::Result<()> {
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "{:?} ended with {}:\n{}{}",
        command.get_program(),
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )))
}
