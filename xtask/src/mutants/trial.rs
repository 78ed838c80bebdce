//! Running the suite against one mistake.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::Value;

use super::catalogue::Catalogue;
use super::planting::VARIABLE;
use crate::cargo::cargo;
use crate::databases::Databases;
use crate::stop::Stop;

/// Seconds that a case may take: with a mistake in the store some never end.
const DEADLINE: &str = "60";
/// And the whole suite.
const LIMIT: Duration = Duration::from_secs(300);
const THREADS: &str = "6";

/// A built suite.
pub(crate) struct Suite<'a> {
    program: PathBuf,
    /// Where cargo would run it.
    folder: PathBuf,
    logs: PathBuf,
    databases: &'a Databases,
    stop: &'a Stop,
}

/// What the suite said.
#[derive(Default)]
pub(crate) struct Verdict {
    pub(crate) failed: BTreeSet<String>,
    pub(crate) passed: usize,
    /// The process crashed, or had to be killed.
    pub(crate) died: bool,
}

impl<'a> Suite<'a> {
    /// Builds the tree that lies in `place`. Not in the workspace's own target folder: Cargo takes
    /// the packages of both for the same.
    pub(crate) fn build(
        place: &Path,
        catalogue: &Catalogue,
        databases: &'a Databases,
        stop: &'a Stop,
    ) -> io::Result<Self> {
        let mut build = cargo(&["test", "--no-run", "--all-features", "--locked"]);
        build
            .args(["--message-format", "json-render-diagnostics"])
            .args(["-p", &catalogue.package, "--test", &catalogue.suite])
            .current_dir(place.join("tree"))
            .env("CARGO_TARGET_DIR", place.join("target"))
            .stderr(Stdio::inherit());
        let built = build.output()?;
        if !built.status.success() {
            return Err(io::Error::other("the mutants don't compile"));
        }
        let (program, folder) = String::from_utf8_lossy(&built.stdout)
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .filter(|message| message["target"]["name"] == catalogue.suite.as_str())
            .find_map(|message| {
                let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
                Some((message["executable"].as_str()?.into(), folder.to_owned()))
            })
            .ok_or_else(|| io::Error::other("cargo built no test program"))?;
        let logs = place.join("logs");
        fs::create_dir_all(&logs)?;
        Ok(Self {
            program,
            folder,
            logs,
            databases,
            stop,
        })
    }

    /// Runs the cases that `arguments` choose, with this mistake, or without any.
    pub(crate) fn run(&self, mutant: Option<&str>, arguments: &[&str]) -> io::Result<Verdict> {
        self.stop.check()?;
        let log = self.logs.join(format!("{}.log", mutant.unwrap_or("none")));
        let out = File::create(&log)?;
        let mut command = Command::new(&self.program);
        command
            .args(["--test-threads", THREADS])
            .args(arguments)
            .current_dir(&self.folder)
            .env("ONCEONLY_DEADLINE", DEADLINE)
            .env("RUST_BACKTRACE", "0")
            .env_remove(VARIABLE)
            .envs(mutant.map(|mutant| (VARIABLE, mutant)))
            .stdin(Stdio::null())
            .stderr(out.try_clone()?)
            .stdout(out)
            .process_group(0);
        self.databases.give(&mut command);
        let mut child = command.spawn()?;
        let started = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break Some(status);
            }
            if started.elapsed() > LIMIT || self.stop.check().is_err() {
                if let Ok(group) = i32::try_from(child.id()) {
                    let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
                }
                child.wait()?;
                break None;
            }
            thread::sleep(Duration::from_millis(20));
        };
        self.stop.check()?;
        let mut verdict = read(&String::from_utf8_lossy(&fs::read(&log)?));
        // 101 is what a test program with failed cases ends with.
        verdict.died = !matches!(status.and_then(|status| status.code()), Some(0 | 101));
        Ok(verdict)
    }
}

fn read(log: &str) -> Verdict {
    let mut verdict = Verdict::default();
    for line in log.lines() {
        let Some((case, result)) = line
            .strip_prefix("test ")
            .and_then(|line| line.split_once(" ... "))
        else {
            continue;
        };
        match result {
            "ok" => verdict.passed += 1,
            "FAILED" => {
                verdict.failed.insert(case.to_owned());
            }
            _ => {}
        }
    }
    verdict
}
