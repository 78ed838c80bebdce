//! Every answer that the provider got, written down as it came.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

/// What billing answered to one attempt of one delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Line {
    /// The event's source and id.
    pub(crate) event: (String, String),
    /// Which of the event's deliveries.
    pub(crate) delivery: usize,
    pub(crate) answer: Answer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Answer {
    /// 200, and the body says processed.
    Processed,
    /// 200, and the body says duplicate.
    Duplicate,
    /// 200, and the body says neither.
    Unclear,
    /// Another status.
    Refused(u16),
    /// The request was sent, and no answer came.
    Lost,
}

impl Answer {
    pub(crate) const fn is_200(self) -> bool {
        matches!(self, Self::Processed | Self::Duplicate | Self::Unclear)
    }
}

/// A file of lines.
#[derive(Debug)]
pub(crate) struct Journal(Mutex<File>);

impl Journal {
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        Ok(Self(Mutex::new(File::create(path)?)))
    }

    pub(crate) fn write(&self, line: &Line) -> io::Result<()> {
        let text = serde_json::to_string(line)? + "\n";
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(text.as_bytes())
    }
}

pub(crate) fn read(path: &Path) -> io::Result<Vec<Line>> {
    BufReader::new(File::open(path)?)
        .lines()
        .map(|line| Ok(serde_json::from_str(&line?)?))
        .collect()
}
