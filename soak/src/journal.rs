//! The answers, one line each: what the deliverer says, for the judge to compare.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::str::{FromStr, SplitWhitespace};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::Failure;
use crate::delivery::{Answer, PlanKind};

/// One delivery and its answer. Tickets are drawn from one counter, so they order what happened:
/// a delivery that ended at a lower ticket than another one began was over before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Line {
    /// Which delivery, from 0. Its ledger row carries it.
    pub(crate) delivery: u64,
    pub(crate) event: u32,
    pub(crate) plan: PlanKind,
    pub(crate) began: u64,
    /// Drawn when apply was through, before anything was sent to commit.
    pub(crate) commit_began: Option<u64>,
    pub(crate) ended: u64,
    pub(crate) answer: Answer,
}

/// The journal as the deliverer writes it.
pub(crate) struct Journal {
    file: Mutex<File>,
    tickets: AtomicU64,
}

impl Journal {
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        Ok(Self {
            file: Mutex::new(File::create(path)?),
            tickets: AtomicU64::new(1),
        })
    }

    pub(crate) fn ticket(&self) -> u64 {
        self.tickets.fetch_add(1, Ordering::SeqCst)
    }

    pub(crate) fn write(&self, line: &Line) -> Result<(), Failure> {
        let commit_began = line
            .commit_began
            .map_or_else(|| "-".to_owned(), |ticket| ticket.to_string());
        let text = format!(
            "{} {} {} {} {commit_began} {} {}\n",
            line.delivery, line.event, line.plan, line.began, line.ended, line.answer
        );
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(file.write_all(text.as_bytes())?)
    }
}

/// The journal as the judge reads it.
pub(crate) fn read(path: &Path) -> Result<Vec<Line>, Failure> {
    let file = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut lines = Vec::new();
    for (number, text) in BufReader::new(file).lines().enumerate() {
        let line = parse(&text?)
            .map_err(|failure| format!("line {} of the journal: {failure}", number + 1))?;
        lines.push(line);
    }
    Ok(lines)
}

fn parse(text: &str) -> Result<Line, Failure> {
    let mut words = text.split_whitespace();
    let line = Line {
        delivery: next(&mut words)?,
        event: next(&mut words)?,
        plan: next(&mut words)?,
        began: next(&mut words)?,
        commit_began: match words.next() {
            Some("-") => None,
            Some(ticket) => Some(ticket.parse()?),
            None => return Err("cut off".into()),
        },
        ended: next(&mut words)?,
        answer: next(&mut words)?,
    };
    match words.next() {
        Some(word) => Err(format!("{word:?} is too much").into()),
        None => Ok(line),
    }
}

fn next<T: FromStr>(words: &mut SplitWhitespace<'_>) -> Result<T, Failure>
where
    T::Err: Into<Failure>,
{
    let word = words.next().ok_or("cut off")?;
    word.parse().map_err(Into::into)
}
