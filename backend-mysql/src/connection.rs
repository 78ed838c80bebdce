//! A pooled connection that cleans up after itself, wherever its owner is dropped.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use mysql_async::{Conn, DriverError, Error};
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::kill::{self, Server};
use crate::proof::Nonce;
use crate::reply::Reply;
use crate::statements;

/// How long a ROLLBACK in the background may take before the server is told to kill the session.
const SETTLE_LIMIT: Duration = Duration::from_secs(2);

/// What has to happen to a connection before its pool may have it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing: no transaction is open and every reply was read.
    Clean,
    /// ROLLBACK, and the nonce that proves it.
    Open,
    /// As `Open`, and the session's lock wait is still the claim's.
    Contending,
    /// It can't go back. A request may be in flight, or replies don't belong to requests any more.
    Broken,
}

impl Phase {
    /// What rolls back, and the nonce that proves it.
    fn rollback(self) -> Option<(String, Nonce)> {
        let nonce = Nonce::random();
        match self {
            Self::Clean | Self::Broken => None,
            Self::Open => Some((statements::rollback(nonce), nonce)),
            Self::Contending => Some((statements::recover(nonce), nonce)),
        }
    }
}

/// A connection of the pool for one claim.
///
/// Dropping it at any time is safe: what is open is rolled back by a task on the runtime that it
/// was taken on, what is in flight is killed, and only a connection that proved to be clean goes
/// back to the pool.
pub(crate) struct Connection {
    conn: Option<Conn>,
    phase: Phase,
    runtime: Handle,
    server: Server,
}

impl Connection {
    pub(crate) fn new(mut conn: Conn, runtime: Handle) -> Self {
        // If apply swaps the connection for another one, the driver resets the one that got out.
        conn.reset_connection(true);
        Self {
            server: Server::of(&conn),
            conn: Some(conn),
            phase: Phase::Clean,
            runtime,
        }
    }

    #[allow(clippy::unreachable, reason = "only drop takes the connection out")]
    pub(crate) fn get(&self) -> &Conn {
        match &self.conn {
            Some(conn) => conn,
            None => unreachable!("the connection is taken by drop only"),
        }
    }

    #[allow(clippy::unreachable, reason = "only drop takes the connection out")]
    pub(crate) fn get_mut(&mut self) -> &mut Conn {
        match &mut self.conn {
            Some(conn) => conn,
            None => unreachable!("the connection is taken by drop only"),
        }
    }

    /// Sends one request. Dropping the future leaves a connection that is killed, not pooled.
    async fn exchange(&mut self, text: &str, then: Phase) -> Reply {
        if self.get().is_disconnected() {
            self.phase = Phase::Broken;
            return Reply {
                rows: Vec::new(),
                statements: 0,
                affected: 0,
                error: Some(Error::Driver(DriverError::ConnectionClosed)),
            };
        }
        self.phase = Phase::Broken;
        let reply = Reply::of(self.get_mut(), text).await;
        if !matches!(&reply.error, Some(error) if error.is_fatal()) {
            self.phase = then;
        }
        reply
    }

    /// One try at a key: `text` is a [`statements`] text that changes the lock wait and is marked with
    /// the nonce. `None`: replies don't belong to requests here, whoever had the connection last.
    pub(crate) async fn contend(&mut self, text: &str, nonce: Nonce) -> Option<Reply> {
        self.server.expect(nonce);
        let reply = if self.server.is_known() {
            self.exchange(text, Phase::Contending).await
        } else {
            let text = statements::greeting(nonce) + text;
            let mut reply = self.exchange(&text, Phase::Contending).await;
            match reply.take_greeting(nonce) {
                Some(row) => self.server.introduce(&row),
                None if matches!(&reply.error, Some(error) if error.is_fatal()) => {}
                None => {
                    self.phase = Phase::Broken;
                    return None;
                }
            }
            reply
        };
        if reply.error.is_none() {
            self.phase = Phase::Open;
        }
        Some(reply)
    }

    /// The last request ended its transaction and said so.
    pub(crate) fn settled(&mut self) {
        self.phase = Phase::Clean;
    }

    /// Sends a request that ends every transaction and then selects the nonce; afterwards the
    /// connection is clean if that came back.
    pub(crate) async fn conclude(&mut self, text: &str, nonce: Nonce) -> Reply {
        let before = self.phase;
        let reply = self.exchange(text, before).await;
        if reply.ends_with(nonce) {
            self.phase = Phase::Clean;
        } else if reply.error.is_none() {
            self.phase = Phase::Broken;
        }
        reply
    }

    /// Rolls back whatever is open.
    ///
    /// # Errors
    ///
    /// When the server did not confirm it, with its error if there was one.
    pub(crate) async fn roll_back(&mut self) -> Result<(), Option<Error>> {
        let Some((text, nonce)) = self.phase.rollback() else {
            return if self.phase == Phase::Clean {
                Ok(())
            } else {
                Err(None)
            };
        };
        let reply = self.conclude(&text, nonce).await;
        if reply.ends_with(nonce) {
            return Ok(());
        }
        self.phase = Phase::Broken;
        Err(reply.error)
    }

    /// Marks it as unfit for the pool: dropping it closes it, after a KILL.
    pub(crate) fn give_up(&mut self) {
        self.phase = Phase::Broken;
    }

    /// Closes it without a KILL: nothing is in flight, but its session is not what it was.
    pub(crate) fn retire(mut self) {
        if let Some(conn) = self.conn.take() {
            close(conn);
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let Some(conn) = self.conn.take() else {
            return;
        };
        if self.phase == Phase::Clean {
            hand_back(conn);
            return;
        }
        let unsettled = Unsettled(Some(conn));
        let (phase, server) = (self.phase, self.server.clone());
        // After the runtime's shutdown this drops the task at once, and with it the connection.
        self.runtime
            .spawn(async move { unsettled.settle(phase, &server).await });
    }
}

/// A connection that must not reach the pool as it is. Dropping it closes it.
struct Unsettled(Option<Conn>);

impl Unsettled {
    async fn settle(mut self, phase: Phase, server: &Server) {
        if let Some((text, nonce)) = phase.rollback()
            && let Some(conn) = &mut self.0
            && !conn.is_disconnected()
        {
            let reply = timeout(SETTLE_LIMIT, Reply::of(conn, &text)).await;
            if matches!(reply, Ok(reply) if reply.ends_with(nonce)) {
                if let Some(conn) = self.0.take() {
                    hand_back(conn);
                }
                return;
            }
        }
        kill::session(server).await;
    }
}

impl Drop for Unsettled {
    fn drop(&mut self) {
        if let Some(conn) = self.0.take() {
            close(conn);
        }
    }
}

/// To the pool, which treats it by its own options again.
fn hand_back(mut conn: Conn) {
    let reset = conn.opts().pool_opts().reset_connection();
    conn.reset_connection(reset);
}

/// Closes a connection at once, inside or outside of a runtime: the driver marks it as disconnected
/// before it first waits, and a pool throws away what is marked so.
fn close(conn: Conn) {
    let goodbye = pin!(conn.disconnect());
    let _ = goodbye.poll(&mut Context::from_waker(Waker::noop()));
}
