//! Each server starts, survives a kill and leaves nothing behind.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test states what it expects"
)]

use std::env;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use onceonly_test_servers::{MariaDbServer, PgBouncer, PostgresServer};

fn answers(addr: SocketAddr) -> bool {
    TcpStream::connect(addr).is_ok()
}

fn folder(server_ca: &Path) -> PathBuf {
    server_ca.parent().expect("a file in a folder").to_owned()
}

/// The first byte of a PostgreSQL server's answer to a startup packet of version 3.0: `R` when it
/// lets the user in, `E` for an error.
fn startup_answer(addr: SocketAddr) -> io::Result<u8> {
    let parameters = b"user\0postgres\0database\0postgres\0\0";
    let mut packet = u32::try_from(8 + parameters.len())
        .unwrap()
        .to_be_bytes()
        .to_vec();
    packet.extend(196_608_u32.to_be_bytes());
    packet.extend(parameters);
    let mut stream = TcpStream::connect(addr)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.write_all(&packet)?;
    let mut answer = [0];
    stream.read_exact(&mut answer)?;
    Ok(answer[0])
}

#[test]
fn postgres_survives_a_kill_and_is_removed_when_dropped() -> io::Result<()> {
    let server = PostgresServer::start()?;
    let folder = folder(server.tls().ca());
    assert_eq!(startup_answer(server.addr())?, b'R');
    server.kill()?;
    assert!(!answers(server.addr()));
    server.start_again()?;
    server.kill_and_restart()?;
    assert_eq!(startup_answer(server.addr())?, b'R');
    let addr = server.addr();
    drop(server);
    assert!(!answers(addr) && !folder.exists());
    Ok(())
}

#[test]
fn mariadb_survives_a_kill_and_is_removed_when_dropped() -> io::Result<()> {
    let server = MariaDbServer::start()?;
    let folder = folder(server.tls().ca());
    assert!(answers(server.addr()));
    server.kill()?;
    assert!(!answers(server.addr()));
    server.start_again()?;
    server.kill_and_restart()?;
    assert!(answers(server.addr()));
    let addr = server.addr();
    drop(server);
    assert!(!answers(addr) && !folder.exists());
    Ok(())
}

#[test]
fn pgbouncer_lets_clients_through_to_its_server() -> io::Result<()> {
    let server = PostgresServer::start()?;
    let bouncer = PgBouncer::start(&server)?;
    assert_eq!(startup_answer(bouncer.addr())?, b'R');
    let addr = bouncer.addr();
    drop(bouncer);
    assert!(!answers(addr));
    Ok(())
}

#[test]
fn a_killed_postgres_has_no_children_left() -> io::Result<()> {
    let server = PostgresServer::start()?;
    let _client = TcpStream::connect(server.addr())?;
    let data = folder(server.tls().ca()).join("data");
    assert!(programs_in(&data) > 1);
    server.kill()?;
    assert_eq!(programs_in(&data), 0);
    Ok(())
}

/// Processes whose working directory is this one, as it is for every process of PostgreSQL.
fn programs_in(data: &Path) -> usize {
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter(|process| fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd == data))
        .count()
}

#[test]
fn servers_outlive_the_thread_that_started_them() -> io::Result<()> {
    let started =
        thread::spawn(|| Ok::<_, io::Error>((PostgresServer::start()?, MariaDbServer::start()?)));
    let (postgres, mariadb) = started.join().expect("no panic")?;
    // A signal of the parent's death would have been on its way before the join returned.
    thread::sleep(Duration::from_millis(300));
    assert!(answers(postgres.addr()) && answers(mariadb.addr()));
    Ok(())
}

#[test]
fn a_killed_process_leaves_no_server_and_its_folder_is_swept() -> io::Result<()> {
    const CHILD: &str = "ONCEONLY_TEST_SERVERS_CHILD";
    if env::var_os(CHILD).is_some() {
        let server = PostgresServer::start()?;
        println!(
            "\nstarted {} {}",
            server.addr(),
            server.tls().ca().display()
        );
        loop {
            thread::park();
        }
    }
    let this = "a_killed_process_leaves_no_server_and_its_folder_is_swept";
    let mut child = Command::new(env::current_exe()?)
        .args(["--exact", this, "--nocapture"])
        .env(CHILD, "1")
        .stdout(Stdio::piped())
        .spawn()?;
    let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let started = lines
        .map_while(Result::ok)
        .find_map(|line| Some(line.strip_prefix("started ")?.to_owned()))
        .expect("the child starts a server");
    let (addr, ca) = started.split_once(' ').expect("an address and a file");
    let addr: SocketAddr = addr.parse().expect("an address");
    assert!(answers(addr));
    child.kill()?;
    assert_eq!(child.wait()?.signal(), Some(9));

    let deadline = Instant::now() + Duration::from_secs(30);
    while answers(addr) {
        assert!(Instant::now() < deadline, "the server outlived its process");
        thread::sleep(Duration::from_millis(20));
    }
    let _next = PostgresServer::start()?;
    assert!(!folder(Path::new(ca)).exists());
    Ok(())
}
