//! Free ports, and waiting for a server to listen on one.

use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Below the ports that the kernel gives to outgoing connections (32768 and up on Linux): while a
/// server is down for its restart, no client can be given its port, nor connect to itself there.
const FIRST: u16 = 18_000;
const COUNT: u32 = 14_000;

/// A port that was free a moment ago. Whoever starts a server on it tries again when it was taken.
pub(crate) fn free() -> io::Result<SocketAddr> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Processes that start together begin at different places.
    let first = process::id().wrapping_mul(271);
    for _ in 0..COUNT {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let offset = u16::try_from(first.wrapping_add(step) % COUNT).unwrap_or_default();
        let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, FIRST + offset));
        if is_free(addr) {
            return Ok(addr);
        }
    }
    Err(io::Error::new(
        io::ErrorKind::AddrInUse,
        format!("none of the {COUNT} ports from {FIRST} is free"),
    ))
}

/// Whether a server could listen there.
pub(crate) fn is_free(addr: SocketAddr) -> bool {
    TcpListener::bind(addr).is_ok()
}

/// Whether a MySQL protocol server greets there with anything but an error.
pub(crate) fn greets(addr: SocketAddr) -> bool {
    const PROTOCOL_VERSION: u8 = 10;
    let greeting = || -> io::Result<u8> {
        let mut stream = TcpStream::connect_timeout(&addr, Duration::from_secs(1))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        let mut packet = [0; 5];
        stream.read_exact(&mut packet)?;
        Ok(packet[4])
    };
    greeting().is_ok_and(|first| first == PROTOCOL_VERSION)
}
