//! Free ports, and waiting for a server to listen on one.

use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// A port that was free a moment ago. Whoever starts a server on it tries again when it was taken.
pub(crate) fn free() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

/// Whether something accepts connections there.
pub(crate) fn accepts(addr: SocketAddr) -> bool {
    TcpStream::connect_timeout(&addr, Duration::from_secs(1)).is_ok()
}

/// Whether a MySQL protocol server greets there with anything but an error.
pub(crate) fn greets(addr: SocketAddr) -> bool {
    let greeting = || -> io::Result<u8> {
        let mut stream = TcpStream::connect_timeout(&addr, Duration::from_secs(1))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        let mut packet = [0; 5];
        stream.read_exact(&mut packet)?;
        Ok(packet[4])
    };
    greeting().is_ok_and(|first| first == 10)
}
