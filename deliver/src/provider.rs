//! What a provider does: sign, send, and send again until the answer is 200.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};
use ureq::Agent;

use crate::billing::SECRET;
use crate::journal::{Answer, Journal};

/// How often each event is delivered, at the same time.
const COPIES: usize = 3;
/// How often one delivery is tried before the provider gives up.
const ATTEMPTS: usize = 30;
/// How many events are delivered at the same time.
const TOGETHER: usize = 8;

/// One event to deliver.
pub(crate) struct Event {
    pub(crate) id: String,
    event_type: String,
    body: Vec<u8>,
}

/// The events of a folder: each file is a body, and its name begins with the event's type.
pub(crate) fn events(folder: &Path) -> io::Result<Vec<Event>> {
    let mut files: Vec<_> = fs::read_dir(folder)?.collect::<io::Result<_>>()?;
    files.sort_by_key(fs::DirEntry::file_name);
    let mut events = Vec::new();
    for file in files {
        let name = file.file_name().to_string_lossy().into_owned();
        if let Some((event_type, _)) = name.split_once('.').filter(|_| name.ends_with(".json")) {
            let digest = hex::encode(Sha256::digest(&name));
            // In the form of GitHub's ids: the same at each delivery of the same event.
            let id = [
                &digest[..8],
                &digest[8..12],
                &digest[12..16],
                &digest[16..20],
                &digest[20..32],
            ];
            let body = fs::read(file.path())?;
            events.push(Event {
                id: id.join("-"),
                event_type: event_type.to_owned(),
                body,
            });
        }
    }
    if events.is_empty() {
        return Err(io::Error::other(format!(
            "no bodies in {}",
            folder.display()
        )));
    }
    Ok(events)
}

/// Delivers every event, its copies racing.
pub(crate) fn deliver(events: &[Event], addr: SocketAddr) -> Journal {
    let url = format!("http://{addr}/webhooks/github");
    let config = Agent::config_builder().http_status_as_error(false);
    let agent: Agent = config
        .timeout_global(Some(Duration::from_secs(30)))
        .build()
        .into();
    let mut journal = Journal::new();
    for together in events.chunks(TOGETHER) {
        let barrier = Barrier::new(together.len() * COPIES);
        thread::scope(|scope| {
            let mut racing = Vec::new();
            for event in together {
                for _ in 0..COPIES {
                    let (agent, url, barrier) = (&agent, &url, &barrier);
                    let delivery = scope.spawn(move || {
                        barrier.wait();
                        attempts(agent, url, event)
                    });
                    racing.push((event, delivery));
                }
            }
            for (event, delivery) in racing {
                let answers = delivery.join().unwrap_or_default();
                journal.entry(event.id.clone()).or_default().push(answers);
            }
        });
    }
    journal
}

fn attempts(agent: &Agent, url: &str, event: &Event) -> Vec<Answer> {
    let mut answers = Vec::new();
    while answers.len() < ATTEMPTS {
        let answer = attempt(agent, url, event);
        answers.push(answer);
        if !matches!(answer, Answer::Retry(_)) {
            break;
        }
        thread::sleep(Duration::from_millis(100));
    }
    answers
}

fn attempt(agent: &Agent, url: &str, event: &Event) -> Answer {
    let response = agent
        .post(url)
        .header("X-GitHub-Event", &event.event_type)
        .header("X-GitHub-Delivery", &event.id)
        .header(
            "X-Hub-Signature-256",
            format!("sha256={}", signature(&event.body)),
        )
        .send(&event.body[..]);
    let Ok(mut response) = response else {
        return Answer::Retry(0);
    };
    let status = response.status().as_u16();
    let body = response.body_mut().read_to_string().unwrap_or_default();
    let body: serde_json::Value = serde_json::from_str(&body).unwrap_or_default();
    match (status, body["result"].as_str()) {
        (200, Some("processed")) => Answer::Processed,
        (200, Some("duplicate")) => Answer::Duplicate,
        _ => Answer::Retry(status),
    }
}

fn signature(body: &[u8]) -> String {
    match Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()) {
        Ok(mac) => hex::encode(mac.chain_update(body).finalize().into_bytes()),
        Err(_) => String::new(),
    }
}
