//! Each server starts, survives a kill and leaves nothing behind.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test states what it expects"
)]

use std::io::Result;
use std::net::{SocketAddr, TcpStream};

use onceonly_test_servers::{MariaDbServer, PgBouncer, PostgresServer};

fn answers(addr: SocketAddr) -> bool {
    TcpStream::connect(addr).is_ok()
}

#[test]
fn postgres_survives_a_kill_and_is_removed_when_dropped() -> Result<()> {
    let server = PostgresServer::start()?;
    let ca = server.tls().ca().to_owned();
    assert!(ca.exists() && answers(server.addr()));
    server.kill()?;
    assert!(!answers(server.addr()));
    server.start_again()?;
    assert!(answers(server.addr()));
    let addr = server.addr();
    drop(server);
    assert!(!answers(addr) && !ca.parent().unwrap().exists());
    Ok(())
}

#[test]
fn mariadb_survives_a_kill_and_is_removed_when_dropped() -> Result<()> {
    let server = MariaDbServer::start()?;
    let ca = server.tls().ca().to_owned();
    assert!(ca.exists() && answers(server.addr()));
    server.kill()?;
    assert!(!answers(server.addr()));
    server.start_again()?;
    assert!(answers(server.addr()));
    let addr = server.addr();
    drop(server);
    assert!(!answers(addr) && !ca.parent().unwrap().exists());
    Ok(())
}

#[test]
fn pgbouncer_listens_before_its_server() -> Result<()> {
    let server = PostgresServer::start()?;
    let bouncer = PgBouncer::start(&server)?;
    assert!(answers(bouncer.addr()));
    Ok(())
}
