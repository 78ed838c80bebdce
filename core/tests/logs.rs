//! What the log says of a delivery, and at which level.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test states what it expects"
)]

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use onceonly::{Event, Handler, MemoryStore};
use tracing::subscriber::DefaultGuard;

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn capture(&self) -> DefaultGuard {
        let log = self.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::DEBUG)
            .with_ansi(false)
            .without_time()
            .with_writer(move || log.clone())
            .finish();
        tracing::subscriber::set_default(subscriber)
    }

    fn line(&self, outcome: &str) -> String {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        let wanted = format!("outcome=\"{outcome}\"");
        let line = text.lines().find(|line| line.contains(&wanted));
        line.unwrap_or_else(|| panic!("no line with {wanted} in:\n{text}"))
            .to_owned()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn event() -> Event {
    Event::new("stripe", "evt_1")
        .unwrap()
        .with_type("invoice.paid")
        .unwrap()
}

#[tokio::test]
async fn processed_and_duplicate_are_told_at_debug_with_all_fields() {
    let log = Log::default();
    let _capturing = log.capture();
    let handler = Handler::new(MemoryStore::new());
    for _ in 0..2 {
        handler
            .handle(&event(), async |_| Ok::<_, io::Error>(()))
            .await
            .unwrap();
    }
    for outcome in ["processed", "duplicate"] {
        let line = log.line(outcome);
        assert!(line.starts_with("DEBUG"), "{line}");
        for field in [
            "source=stripe",
            "event_id=evt_1",
            "event_type=invoice.paid",
            "waited=",
        ] {
            assert!(line.contains(field), "no {field} in {line}");
        }
    }
}

#[tokio::test]
async fn in_flight_and_failed_applies_are_told_at_info() {
    let log = Log::default();
    let _capturing = log.capture();
    let handler = Handler::new(MemoryStore::new()).with_wait(Duration::ZERO);
    let guard = handler.begin(&event()).await.unwrap();
    handler.begin(&event()).await.unwrap_err();
    drop(guard);
    handler
        .handle(&event(), async |_| Err::<(), _>(io::Error::other("no")))
        .await
        .unwrap_err();
    for outcome in ["in_flight", "apply_failed"] {
        let line = log.line(outcome);
        assert!(line.trim_start().starts_with("INFO"), "{line}");
    }
}

#[tokio::test]
async fn an_apply_past_its_limit_is_told_at_warn() {
    let log = Log::default();
    let _capturing = log.capture();
    let handler = Handler::new(MemoryStore::new()).with_apply_limit(Duration::ZERO);
    let stuck = async |_: &mut onceonly::MemoryTx| std::future::pending::<io::Result<()>>().await;
    handler.handle(&event(), stuck).await.unwrap_err();
    let line = log.line("apply_timed_out");
    assert!(line.trim_start().starts_with("WARN"), "{line}");
}
