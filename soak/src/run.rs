//! Delivering and judging, each in a process of its own.

use std::env;
use std::ffi::OsString;
use std::process::Command;

use crate::Failure;
use crate::arguments::{Kind, Run};

pub(crate) fn main(run: &Run) -> Result<(), Failure> {
    // Not below /tmp, which may be in memory, where an fsync costs nothing.
    let directory = tempfile::tempdir_in(env::current_dir()?)?;
    let kind = run.place.database;
    let in_directory = |name: &str| directory.path().join(name);
    let journal = run.journal.clone();
    let journal = journal.unwrap_or_else(|| in_directory("journal.txt"));

    let mut place: Vec<OsString> = vec!["--database".into(), kind.name().into()];
    let mut variable = None;
    if kind == Kind::Sqlite {
        let file = run.place.file.clone();
        let file = file.unwrap_or_else(|| in_directory("soak.db"));
        place.extend(["--file".into(), file.into()]);
    } else {
        // Not as an argument: every user of the machine could read its password there.
        variable = Some((kind.variable(), run.place.url()?));
    }
    let load = &run.load;
    let size = [
        format!("--events={}", load.size.events),
        format!("--deliveries={}", load.size.deliveries),
    ];

    let program = env::current_exe()?;
    let child = |name: &str| {
        let mut child = Command::new(&program);
        child
            .arg(name)
            .args(&place)
            .args(&size)
            .envs(variable.clone());
        child.arg("--journal").arg(&journal);
        child
    };
    let mut deliver = child("deliver");
    deliver.arg(format!("--concurrency={}", load.concurrency));
    if let Some(seed) = load.seed {
        deliver.arg(format!("--seed={seed}"));
    }
    if let Some(every) = load.kill_every {
        deliver.arg(format!("--kill-every={every}"));
    }
    if let Some(sabotage) = load.sabotage {
        deliver.arg(format!("--sabotage={}", sabotage.name()));
    }
    let delivered = deliver.status()?;

    let judged = child("judge").status()?;
    if delivered.success() && judged.success() {
        return Ok(());
    }
    Err(format!("deliver ended with {delivered}, judge with {judged}").into())
}
