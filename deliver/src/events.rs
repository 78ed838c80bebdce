//! The events of a folder: each file is a body, and its name begins with the event's type.

use std::error::Error;
use std::fs;
use std::path::Path;

use serde_json::Value;
use sha2::{Digest, Sha256};

/// One event to deliver.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) id: String,
    pub(crate) sender: Sender,
    pub(crate) body: Vec<u8>,
    /// What the ledger must credit for it.
    pub(crate) amount: i64,
}

/// Who sends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sender {
    /// Type and id are in headers.
    GitHub { event_type: String },
    /// Type and id are in the body.
    Invoices,
}

impl Sender {
    /// What billing calls it.
    pub(crate) const fn source(&self) -> &'static str {
        match self {
            Self::GitHub { .. } => "github",
            Self::Invoices => "invoices",
        }
    }
}

/// Reads `EVENT.NAME.payload.json`, the files in the order of their names.
pub(crate) fn read(folder: &Path) -> Result<Vec<Event>, Box<dyn Error>> {
    let mut files = fs::read_dir(folder)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| format!("{}: {error}", folder.display()))?;
    files.sort_by_key(fs::DirEntry::file_name);
    let mut events = Vec::new();
    for file in files {
        let name = file.file_name().to_string_lossy().into_owned();
        if let Some((event_type, _)) = name.split_once('.').filter(|_| name.ends_with(".json")) {
            events.push(event(&name, event_type, fs::read(file.path())?)?);
        }
    }
    if events.is_empty() {
        return Err(format!("no bodies in {}", folder.display()).into());
    }
    Ok(events)
}

fn event(name: &str, event_type: &str, body: Vec<u8>) -> Result<Event, Box<dyn Error>> {
    if event_type != "invoice" {
        let event_type = event_type.to_owned();
        return Ok(Event {
            id: guid(name),
            sender: Sender::GitHub { event_type },
            body,
            amount: 1,
        });
    }
    let invoice: Value = serde_json::from_slice(&body)?;
    let (id, amount) = (invoice["id"].as_str(), invoice["amount"].as_i64());
    Ok(Event {
        id: id.ok_or_else(|| format!("{name} has no id"))?.to_owned(),
        sender: Sender::Invoices,
        amount: amount.ok_or_else(|| format!("{name} has no amount"))?,
        body,
    })
}

/// In the form of GitHub's ids, and the same at each delivery of the same event.
fn guid(name: &str) -> String {
    let mut digits = hex::encode(Sha256::digest(name));
    digits.truncate(32);
    for at in [20, 16, 12, 8] {
        digits.insert(at, '-');
    }
    digits
}
