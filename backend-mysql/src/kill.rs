//! Ending a session whose request is in flight, from a connection of its own.
//!
//! A server does not notice that a client has gone while the client's statement waits for a lock
//! (measured), so that closing the socket alone would keep the claim's key queued.

use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, Opts, OptsBuilder, Row};
use tokio::time::{Instant, timeout};
use tracing::{debug, warn};

use crate::proof::Nonce;
use crate::reply::{bytes, number};

/// Bounds everything here; afterwards the server's own limits free the key.
const LIMIT: Duration = Duration::from_secs(5);
const NO_SUCH_THREAD: u16 = 1094;

/// A server, as it names itself.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Identity {
    host: Vec<u8>,
    port: i64,
}

/// Where a session lives. A second connection with the same options may reach another server, whose
/// session of that number is somebody else's.
#[derive(Clone)]
pub(crate) struct Server {
    opts: Opts,
    session: u32,
    /// When the session was seen alive.
    since: Instant,
    /// In the text of the statement that waits, while the server is not known yet.
    mark: Option<Nonce>,
    identity: Option<Identity>,
}

impl Server {
    pub(crate) fn of(conn: &Conn) -> Self {
        Self {
            opts: conn.opts().clone(),
            session: conn.id(),
            since: Instant::now(),
            mark: None,
            identity: None,
        }
    }

    /// The next request's statements carry this mark.
    pub(crate) fn expect(&mut self, mark: Nonce) {
        self.mark = Some(mark);
    }

    pub(crate) fn is_known(&self) -> bool {
        self.identity.is_some()
    }

    /// Reads the answer to [`statements::greeting`](crate::statements::greeting).
    pub(crate) fn introduce(&mut self, row: &Row) {
        if let (Some(host), Some(port)) = (bytes(row, 1), number(row, 2)) {
            self.identity = Some(Identity {
                host: host.to_vec(),
                port,
            });
        }
    }
}

/// Kills the session; a failure is logged, since the server ends it later anyway.
pub(crate) async fn session(server: &Server) {
    let session = server.session;
    match timeout(LIMIT, kill(server)).await {
        Ok(Ok(())) => debug!(session, "abandoned session killed"),
        Ok(Err(error)) => {
            warn!(session, %error, "abandoned session not killed, left to the server's lock timeout");
        }
        Err(_) => {
            warn!(session, limit = ?LIMIT, "no connection to kill an abandoned session, left to the server's lock timeout");
        }
    }
}

async fn kill(server: &Server) -> Result<(), Error> {
    let opts = OptsBuilder::from_opts(server.opts.clone())
        .init(Vec::<String>::new())
        .setup(Vec::<String>::new());
    let mut conn = Conn::new(opts).await?;
    if is_same(server, &mut conn).await? {
        match conn
            .query_drop(format!("KILL CONNECTION {}", server.session))
            .await
        {
            Err(Error::Server(error)) if error.code == NO_SUCH_THREAD => {}
            result => result?,
        }
    }
    conn.disconnect().await
}

/// Whether the session's number means the same session there.
async fn is_same(server: &Server, conn: &mut Conn) -> Result<bool, Error> {
    if let Some(identity) = &server.identity {
        let here: Option<Row> = conn.query_first("SELECT @@hostname, @@port").await?;
        let uptime: Option<Row> = conn.query_first("SHOW GLOBAL STATUS LIKE 'Uptime'").await?;
        let same = here.is_some_and(|row| {
            bytes(&row, 0) == Some(&identity.host) && number(&row, 1) == Some(identity.port)
        });
        // Numbers start again with the server.
        let restarted = uptime
            .and_then(|row| number(&row, 1))
            .and_then(|seconds| u64::try_from(seconds).ok())
            .is_none_or(|seconds| seconds + 1 < server.since.elapsed().as_secs());
        return Ok(same && !restarted);
    }
    let Some(mark) = server.mark.map(|mark| mark.to_string()) else {
        return Ok(false);
    };
    let sessions: Vec<Row> = conn.query("SHOW FULL PROCESSLIST").await?;
    Ok(sessions.iter().any(|row| {
        number(row, 0) == Some(i64::from(server.session))
            && bytes(row, 7).is_some_and(|info| contains(info, mark.as_bytes()))
    }))
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}
