//! Runs one case: a world of its own, a runtime of its own, a deadline.

use std::any::Any;
use std::env;
use std::fmt;
use std::future::Future;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use onceonly::ClaimRecords;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use crate::steps::Steps;
use crate::{Capabilities, Harness, cases, rules};

type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

/// How long a world may take to tell who waits in it.
const ASKING: Duration = Duration::from_secs(5);

/// One case of the suite.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) needs: &'static [Need],
    pub(crate) run: fn() -> Running,
    pub(crate) deadline: Duration,
}

/// A capability that a case needs, with its name.
#[derive(Clone, Copy)]
pub(crate) struct Need {
    pub(crate) name: &'static str,
    pub(crate) has: fn(&Capabilities) -> bool,
}

impl Case {
    /// The capability that is missing for this case, if any.
    fn lacks(&self, capabilities: &Capabilities) -> Option<&'static str> {
        self.needs
            .iter()
            .find(|need| !(need.has)(capabilities))
            .map(|need| need.name)
    }
}

/// What a case came to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CaseOutcome {
    /// The backend keeps what the case checks.
    Passed,
    /// It doesn't; the text says what was expected and what was seen.
    Failed(String),
    /// The backend doesn't declare this capability.
    Skipped(&'static str),
}

/// A case and what it came to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CaseResult {
    /// The case's name, which begins with its rule.
    pub name: &'static str,
    /// What it came to.
    pub outcome: CaseOutcome,
}

impl fmt::Display for CaseResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.outcome {
            CaseOutcome::Passed => write!(f, "passed: {}", self.name),
            CaseOutcome::Failed(why) => {
                let rule = rules::of(self.name);
                write!(f, "FAILED: {}: {why}\nthe rule: {rule}", self.name)
            }
            CaseOutcome::Skipped(needs) => {
                write!(f, "skipped: {}: `{needs}` is not declared", self.name)
            }
        }
    }
}

/// Runs the case of this name against `H`: what each `#[test]` of [`suite!`](crate::suite) does.
///
/// # Panics
///
/// When the backend breaks the rule, when the case's deadline passes, or when there is no such case.
pub fn run<H: Harness>(name: &str) {
    run_one::<H>(cases::all::<H>(), name);
}

/// Runs the case of this name against `H`, whose store is also [`ClaimRecords`]: what each `#[test]`
/// of [`suite_records!`](crate::suite_records) does.
///
/// # Panics
///
/// As [`run`].
pub fn run_records<H: Harness>(name: &str)
where
    H::Store: ClaimRecords,
{
    run_one::<H>(cases::all_records::<H>(), name);
}

#[allow(clippy::panic, reason = "this is the body of a test")]
fn run_one<H: Harness>(cases: Vec<Case>, name: &str) {
    let Some(case) = cases.into_iter().find(|case| case.name == name) else {
        panic!("the suite has no case `{name}`");
    };
    match execute::<H>(&case, deadline(&case)) {
        Ok(None) => {}
        Ok(Some(lacks)) => {
            let outcome = CaseOutcome::Skipped(lacks);
            println!(
                "{}",
                CaseResult {
                    name: case.name,
                    outcome
                }
            );
        }
        Err(panic) => {
            let outcome = CaseOutcome::Failed(message(panic.as_ref()));
            eprintln!(
                "{}",
                CaseResult {
                    name: case.name,
                    outcome
                }
            );
            resume_unwind(panic)
        }
    }
}

/// The case's own deadline, or ONCEONLY_DEADLINE if that is sooner: seconds, for backends that are
/// known to hang.
fn deadline(case: &Case) -> Duration {
    let sooner = env::var("ONCEONLY_DEADLINE").ok();
    let sooner = sooner.and_then(|seconds| seconds.parse().ok());
    sooner.map_or(case.deadline, |seconds| {
        case.deadline.min(Duration::from_secs(seconds))
    })
}

/// Runs the cases that `filter` picks by name, each for at most `deadline` and sixteen at a time, and
/// reports instead of panicking: for tests of the suite itself.
pub fn report<H: Harness>(filter: impl Fn(&str) -> bool, deadline: Duration) -> Vec<CaseResult> {
    let cases = cases::all::<H>()
        .into_iter()
        .filter(|case| filter(case.name));
    let cases: Vec<Case> = cases.collect();
    let mut results = Vec::with_capacity(cases.len());
    for together in cases.chunks(16) {
        thread::scope(|scope| {
            let run = |case| scope.spawn(move || reported::<H>(case, deadline));
            let running: Vec<_> = together.iter().map(run).collect();
            results.extend(running.into_iter().flat_map(ScopedJoinHandle::join));
        });
    }
    results
}

fn reported<H: Harness>(case: &Case, deadline: Duration) -> CaseResult {
    let outcome = match execute::<H>(case, deadline.min(case.deadline)) {
        Ok(None) => CaseOutcome::Passed,
        Ok(Some(lacks)) => CaseOutcome::Skipped(lacks),
        Err(panic) => CaseOutcome::Failed(message(panic.as_ref())),
    };
    CaseResult {
        name: case.name,
        outcome,
    }
}

/// The names of all cases, in the order of the rules.
#[must_use]
pub fn names<H: Harness>() -> Vec<&'static str> {
    cases::all::<H>().iter().map(|case| case.name).collect()
}

/// The names of all cases for a store that is also [`ClaimRecords`].
#[must_use]
pub fn records_names<H: Harness>() -> Vec<&'static str>
where
    H::Store: ClaimRecords,
{
    cases::all_records::<H>()
        .iter()
        .map(|case| case.name)
        .collect()
}

/// A case that a backend skips.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skip {
    /// The case's name.
    pub case: &'static str,
    /// The capability that the backend doesn't declare.
    pub lacks: &'static str,
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.case, self.lacks)
    }
}

/// The cases that `H` skips, in the order of the rules.
#[must_use]
pub fn skips<H: Harness>() -> Vec<Skip> {
    let capabilities = H::capabilities();
    let cases = cases::all::<H>().into_iter();
    cases
        .filter_map(|case| {
            let lacks = case.lacks(&capabilities)?;
            Some(Skip {
                case: case.name,
                lacks,
            })
        })
        .collect()
}

/// `Ok(Some(capability))` is a skip.
fn execute<H: Harness>(
    case: &Case,
    deadline: Duration,
) -> Result<Option<&'static str>, Box<dyn Any + Send>> {
    if let Some(lacks) = case.lacks(&H::capabilities()) {
        return Ok(Some(lacks));
    }
    let runtime = runtime().map_err(|error| Box::new(error.to_string()) as Box<dyn Any + Send>)?;
    let steps = Steps::default();
    let finished = runtime.block_on(async {
        let task = tokio::spawn(steps.clone().note((case.run)()));
        match timeout(deadline, task).await {
            Ok(ended) => Ok(ended),
            Err(_) => Err(timeout(ASKING, steps.waits()).await),
        }
    });
    // A case that hangs may hold blocking threads: they are left behind, not waited for.
    runtime.shutdown_background();
    match finished {
        Ok(Ok(())) => Ok(None),
        Ok(Err(failed)) => Err(failed.into_panic()),
        Err(waits) => Err(Box::new(format!(
            "not done within {deadline:?}; the last step that ended: {}; waiting: {}",
            steps.last(),
            waits.unwrap_or_else(|_| "the world doesn't answer".to_owned())
        ))),
    }
}

fn runtime() -> std::io::Result<Runtime> {
    Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("a panic")
        .to_owned()
}
