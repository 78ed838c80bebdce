//! One server process, stopped with its value or with this process.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, User};

use crate::binaries;
use crate::descendants::{children, is_gone};

const READY_WITHIN: Duration = Duration::from_secs(60);
const STOPPED_WITHIN: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(20);

/// How to start a server.
#[derive(Debug)]
pub(crate) struct Launch<'a> {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    pub(crate) user: Option<&'a User>,
    pub(crate) log: PathBuf,
    /// Stops it at once and in order, whoever is connected; also sent when this process dies.
    pub(crate) stop: Signal,
}

/// A running server.
#[derive(Debug)]
pub struct Process {
    child: Child,
    pid: Pid,
    stop: Signal,
    /// The kernel sends the parent-death signal when the *thread* that started the child ends, so
    /// that thread lives until this is dropped.
    _starter: Sender<()>,
}

impl Process {
    /// Starts it in the foreground and waits until `ready`, which is told its process id.
    pub(crate) fn start(launch: &Launch<'_>, ready: impl Fn(u32) -> bool) -> io::Result<Self> {
        let log = File::options()
            .create(true)
            .append(true)
            .open(&launch.log)?;
        let mut command = as_user(&launch.program, launch.user, Some(launch.stop))?;
        command.args(&launch.arguments).stdin(Stdio::null());
        command.stdout(log.try_clone()?).stderr(log);
        // Ctrl-C reaches the whole group of the terminal: a server is stopped by us, after its clients.
        command.process_group(0);
        let (child, starter) = spawn_in_own_thread(command)?;
        let id = child.id();
        let mut process = Self {
            child,
            pid: Pid::from_raw(i32::try_from(id).map_err(io::Error::other)?),
            stop: launch.stop,
            _starter: starter,
        };
        let deadline = Instant::now() + READY_WITHIN;
        while !ready(id) {
            if let Some(status) = process.child.try_wait()? {
                return Err(failure(launch, &format!("ended with {status}")));
            }
            if Instant::now() > deadline {
                return Err(failure(
                    launch,
                    &format!("was not ready in {READY_WITHIN:?}"),
                ));
            }
            thread::sleep(POLL);
        }
        Ok(process)
    }

    /// Kills it and its children as `kill -9` does, and waits until all are gone.
    pub(crate) fn kill(&mut self) -> io::Result<()> {
        // Stopped, it can't start another child between the look and the kill.
        let _ = kill(self.pid, Signal::SIGSTOP);
        let children = children(self.pid);
        for child in &children {
            let _ = kill(*child, Signal::SIGKILL);
        }
        self.child.kill()?;
        self.child.wait()?;
        let deadline = Instant::now() + STOPPED_WITHIN;
        while !children.iter().copied().all(is_gone) {
            if Instant::now() > deadline {
                return Err(io::Error::other(
                    "a killed server's children are still there",
                ));
            }
            thread::sleep(POLL);
        }
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        let _ = kill(self.pid, self.stop);
        let deadline = Instant::now() + STOPPED_WITHIN;
        while Instant::now() < deadline {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            thread::sleep(POLL);
        }
        let _ = self.kill();
    }
}

fn failure(launch: &Launch<'_>, what: &str) -> io::Error {
    let log = fs::read_to_string(&launch.log).unwrap_or_default();
    let lines: Vec<&str> = log.lines().collect();
    let tail = lines[lines.len().saturating_sub(15)..].join("\n");
    io::Error::other(format!("{} {what}:\n{tail}", launch.program.display()))
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

/// A command that runs as `user` (root drops its privileges) and, if asked, is sent a signal when
/// its parent dies.
///
/// Changing the user clears the parent-death signal, so it is set after that. An ordinary user
/// without `setpriv` does without: the servers of a killed run then stay.
pub(crate) fn as_user(
    program: &Path,
    user: Option<&User>,
    death: Option<Signal>,
) -> io::Result<Command> {
    let setpriv = binaries::find("setpriv").ok();
    let mut words: Vec<String> = Vec::new();
    if let Some(user) = user {
        let Some(setpriv) = &setpriv else {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                "`setpriv`, which drops the privileges of root, is not installed: \
                 `apt-get install -y util-linux`, or run this as an ordinary user",
            ));
        };
        words.push(setpriv.display().to_string());
        words.push(format!("--reuid={}", user.uid));
        words.push(format!("--regid={}", user.gid));
        words.push("--clear-groups".into());
    }
    if let (Some(setpriv), Some(signal)) = (&setpriv, death) {
        words.push(setpriv.display().to_string());
        let name = signal.as_str().trim_start_matches("SIG");
        words.push(format!("--pdeathsig={name}"));
    }
    words.push(program.display().to_string());
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).current_dir("/");
    Ok(command)
}

/// Runs a command to its end; its output is in the error when it fails.
pub(crate) fn run(command: &mut Command) -> io::Result<()> {
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "{command:?} ended with {}:\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )))
}
