//! The program itself: it starts with nothing installed, and drains when it is told to stop.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test states what it expects"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

struct Running {
    child: Child,
    address: String,
}

impl Running {
    fn start(folder: &tempfile::TempDir) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_billing"))
            .current_dir(folder)
            .env_remove("DATABASE_URL")
            .env_remove("GITHUB_WEBHOOK_SECRET")
            .env("BIND", "127.0.0.1:0")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let address = line
            .split("http://")
            .nth(1)
            .unwrap()
            .split(',')
            .next()
            .unwrap();
        Self {
            address: address.to_owned(),
            child,
        }
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.address).unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const EVENT: &str = r#"{"id":"evt_1","type":"invoice.paid","account":"acme","amount":10}"#;

fn head(more: &str) -> String {
    format!(
        "POST /webhooks/invoices HTTP/1.1\r\nhost: billing\r\ncontent-length: {}\r\n{more}\r\n",
        EVENT.len()
    )
}

fn until_closed(mut stream: TcpStream) -> String {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn sigterm_lets_a_request_end() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let folder = tempfile::tempdir().unwrap();
        let mut billing = Running::start(&folder);
        let mut stream = billing.connect();
        stream
            .write_all(head("expect: 100-continue\r\n").as_bytes())
            .unwrap();
        // Now the request has begun: billing waits for its body.
        let mut go_on = [0; 25];
        stream.read_exact(&mut go_on).unwrap();
        assert!(go_on.starts_with(b"HTTP/1.1 100"));

        kill(
            Pid::from_raw(billing.child.id().try_into().unwrap()),
            signal,
        )
        .unwrap();
        while TcpStream::connect(&billing.address).is_ok() {
            std::thread::yield_now();
        }
        stream.write_all(EVENT.as_bytes()).unwrap();
        let answer = until_closed(stream);
        assert!(answer.contains("processed"), "{answer}");
        assert!(billing.child.wait().unwrap().success());
    }
}

#[test]
fn killed_process_has_forgotten_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for result in ["processed", "duplicate"] {
        let mut billing = Running::start(&folder);
        let mut stream = billing.connect();
        let request = head("connection: close\r\n") + EVENT;
        stream.write_all(request.as_bytes()).unwrap();
        let answer = until_closed(stream);
        assert!(answer.contains(result), "{answer}");
        billing.child.kill().unwrap();
    }
}

#[test]
fn settings_that_cant_be_are_an_error_that_names_them() {
    for (name, value) in [
        ("BIND", "nowhere"),
        ("GITHUB_WEBHOOK_SECRET", ""),
        ("BILLING_FAIL_FIRST", "some"),
        ("DATABASE_URL", "/no/such/folder/billing.db"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_billing"))
            .current_dir(&folder)
            .env("BIND", "127.0.0.1:0")
            .env(name, value)
            .output()
            .unwrap();
        assert!(!output.status.success());
        let error = String::from_utf8(output.stderr).unwrap();
        let about = if name == "DATABASE_URL" {
            "directory"
        } else {
            name
        };
        assert!(error.contains(about), "{name}: {error}");
    }
}
