//! What one request of several statements was answered.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, Row, ServerError, Value};

use onceonly::StoreError;

use crate::error;
use crate::proof::Nonce;

/// The rows of all its statements in order, and the error at which the server stopped.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) rows: Vec<Row>,
    /// Statements that succeeded.
    pub(crate) statements: usize,
    /// Rows that statements without a result changed.
    pub(crate) affected: u64,
    pub(crate) error: Option<Error>,
}

impl Reply {
    /// Sends `text` and reads every reply to it, up to the first error.
    pub(crate) async fn of(conn: &mut Conn, text: &str) -> Self {
        let mut reply = Self {
            rows: Vec::new(),
            statements: 0,
            affected: 0,
            error: None,
        };
        if let Err(error) = reply.read(conn, text).await {
            reply.error = Some(error);
        }
        reply
    }

    async fn read(&mut self, conn: &mut Conn, text: &str) -> Result<(), Error> {
        let mut result = conn.query_iter(text).await?;
        // One set at a time; `None` after the last, and before an error that comes out at the end.
        while let Some(columns) = result.columns() {
            if columns.is_empty() {
                self.affected += result.affected_rows();
            }
            self.rows.extend(result.collect::<Row>().await?);
            self.statements += 1;
        }
        result.drop_result().await
    }

    /// Takes out the answer to the greeting, if it was read.
    pub(crate) fn take_greeting(&mut self, nonce: Nonce) -> Option<Row> {
        if !self.rows.first().is_some_and(|row| holds(row, nonce)) {
            return None;
        }
        self.statements -= 1;
        Some(self.rows.remove(0))
    }

    /// Whether everything ran, the SELECT of this nonce at the end included.
    pub(crate) fn ends_with(&self, nonce: Nonce) -> bool {
        self.error.is_none() && self.rows.last().is_some_and(|row| holds(row, nonce))
    }

    /// The rows before the nonce, or what went wrong outside of a COMMIT.
    pub(crate) fn proven(mut self, nonce: Nonce) -> Result<Vec<Row>, StoreError> {
        if self.ends_with(nonce) {
            self.rows.pop();
            return Ok(self.rows);
        }
        Err(self.error.map_or_else(error::out_of_step, error::statement))
    }

    /// The server's error, when it was one.
    pub(crate) fn server_error(&self) -> Option<&ServerError> {
        match &self.error {
            Some(Error::Server(error)) => Some(error),
            _ => None,
        }
    }
}

/// The bytes in a column, if there are.
pub(crate) fn bytes(row: &Row, column: usize) -> Option<&[u8]> {
    match row.as_ref(column) {
        Some(Value::Bytes(bytes)) => Some(bytes),
        _ => None,
    }
}

/// The number in a column of a text reply.
pub(crate) fn number(row: &Row, column: usize) -> Option<i64> {
    match row.as_ref(column) {
        Some(Value::Int(number)) => Some(*number),
        Some(Value::UInt(number)) => i64::try_from(*number).ok(),
        Some(Value::Bytes(bytes)) => std::str::from_utf8(bytes).ok()?.parse().ok(),
        _ => None,
    }
}

fn holds(row: &Row, nonce: Nonce) -> bool {
    bytes(row, 0).is_some_and(|bytes| nonce.is(bytes))
}
