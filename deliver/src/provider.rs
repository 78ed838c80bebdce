//! What a provider does: sign, send, and send again until the answer is 200.

use std::io;
use std::net::SocketAddr;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use hmac::{Hmac, Mac};
use sha2::Sha256;
use ureq::Agent;

use crate::events::{Event, Sender};
use crate::journal::{Answer, Journal, Line};

/// What GitHub's deliveries are signed with in these runs.
pub(crate) const SECRET: &str = "deliver signs with this";
/// How often each event is delivered, at the same time.
pub(crate) const COPIES: usize = 3;
/// How often one delivery is tried before the provider gives up.
const ATTEMPTS: usize = 30;
/// How many events are delivered at the same time.
const TOGETHER: usize = 8;
/// As long as GitHub waits for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Sends what a provider sends, and writes the answers down.
pub(crate) struct Provider<'a> {
    agent: Agent,
    addr: SocketAddr,
    journal: &'a Journal,
}

impl<'a> Provider<'a> {
    pub(crate) fn new(addr: SocketAddr, journal: &'a Journal) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(PATIENCE));
        Self {
            agent: config.build().into(),
            addr,
            journal,
        }
    }

    /// Delivers every event, its copies racing.
    pub(crate) fn deliver(&self, events: &[Event]) -> io::Result<()> {
        for together in events.chunks(TOGETHER) {
            let barrier = &Barrier::new(together.len() * COPIES);
            thread::scope(|scope| {
                let racing: Vec<_> = together
                    .iter()
                    .flat_map(|event| (0..COPIES).map(move |delivery| (event, delivery)))
                    .map(|(event, delivery)| {
                        scope.spawn(move || {
                            barrier.wait();
                            self.until_200(event, delivery)
                        })
                    })
                    .collect();
                racing.into_iter().try_for_each(|delivery| {
                    let panicked = |_| io::Error::other("a delivery's thread panicked");
                    delivery.join().map_err(panicked)?
                })
            })?;
        }
        Ok(())
    }

    fn until_200(&self, event: &Event, delivery: usize) -> io::Result<()> {
        for _ in 0..ATTEMPTS {
            let (answer, pause) = self.attempt(event);
            self.journal.write(&Line {
                event: (event.sender.source().to_owned(), event.id.clone()),
                delivery,
                answer,
            })?;
            if answer.is_200() {
                break;
            }
            thread::sleep(pause);
        }
        Ok(())
    }

    /// One request: its answer, and how long to wait before the next.
    fn attempt(&self, event: &Event) -> (Answer, Duration) {
        let addr = self.addr;
        let request = match &event.sender {
            Sender::GitHub { event_type } => self
                .agent
                .post(format!("http://{addr}/webhooks/github"))
                .header("X-GitHub-Event", event_type)
                .header("X-GitHub-Delivery", &event.id)
                .header("X-Hub-Signature-256", signature(&event.body)),
            Sender::Invoices => self.agent.post(format!("http://{addr}/webhooks/invoices")),
        };
        let Ok(mut response) = request.send(&event.body[..]) else {
            return (Answer::Lost, pause(None));
        };
        let retry_after = response.headers().get("retry-after");
        let pause = pause(retry_after.and_then(|value| value.to_str().ok()));
        let status = response.status().as_u16();
        let Ok(body) = response.body_mut().read_to_string() else {
            return (Answer::Lost, pause);
        };
        let body: serde_json::Value = serde_json::from_str(&body).unwrap_or_default();
        let answer = match (status, body["result"].as_str()) {
            (200, Some("processed")) => Answer::Processed,
            (200, Some("duplicate")) => Answer::Duplicate,
            (200, _) => Answer::Unclear,
            _ => Answer::Refused(status),
        };
        (answer, pause)
    }
}

/// What `Retry-After` asks for, at most five seconds of it, ten times as fast.
fn pause(retry_after: Option<&str>) -> Duration {
    let seconds = retry_after.and_then(|text| text.parse().ok()).unwrap_or(1);
    Duration::from_millis(100 * u64::min(seconds, 5))
}

fn signature(body: &[u8]) -> String {
    let signed = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes())
        .map(|mac| hex::encode(mac.chain_update(body).finalize().into_bytes()));
    format!("sha256={}", signed.unwrap_or_default())
}
