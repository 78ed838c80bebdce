//! From the driver's errors to the contract's kinds.

use std::error::Error as StdError;

use mysql_async::{Error, Opts, ServerError};
use onceonly::{StoreError, StoreErrorKind};

pub(crate) const DUPLICATE_ENTRY: u16 = 1062;
pub(crate) const LOCK_WAIT_TIMEOUT: u16 = 1205;
pub(crate) const DEADLOCK: u16 = 1213;
pub(crate) const NO_SUCH_SAVEPOINT: u16 = 1305;
pub(crate) const NO_SUCH_TABLE: u16 = 1146;
/// `innodb_snapshot_isolation` of MariaDB: the record changed since the last read.
const RECORD_CHANGED: u16 = 1020;
/// `NOWAIT` on MySQL.
const LOCK_NOWAIT: u16 = 3572;

/// What a claim tries again within its wait. Besides conflicts: 1467 stands for 1213 where the table
/// has an auto-increment column, 1317 and 1969 are a statement interrupted by somebody else, 1047
/// and 1180 a Galera node out of its cluster, 1568 a pooled connection that its last user left
/// inside a transaction.
pub(crate) fn is_passing(code: u16) -> bool {
    is_conflict_code(code) || matches!(code, 1467 | 1317 | 1969 | 1047 | 1180 | 1568)
}

/// Whether the same work in a new transaction may succeed.
///
/// 1205 leaves the transaction alive, but as an error out of `apply` it asks for a new try like a
/// deadlock does: another transaction held a lock for too long.
fn is_conflict_code(code: u16) -> bool {
    matches!(
        code,
        DEADLOCK | LOCK_WAIT_TIMEOUT | RECORD_CHANGED | LOCK_NOWAIT
    )
}

/// At any depth of `source()`.
pub(crate) fn is_conflict(error: &(dyn StdError + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        let code = match error.downcast_ref::<Error>() {
            Some(Error::Server(server)) => Some(server.code),
            Some(_) => None,
            None => error
                .downcast_ref::<ServerError>()
                .map(|server| server.code),
        };
        if code.is_some_and(is_conflict_code) {
            return true;
        }
        next = error.source();
    }
    false
}

/// Whether a 1062 is shown to be the primary key's, by the name that its message quotes last:
/// `PRIMARY`, or on MySQL `table.PRIMARY`. The words around it depend on `lc_messages`.
pub(crate) fn names_primary_key(error: &ServerError) -> bool {
    let key = error
        .message
        .rsplit_once('\'')
        .and_then(|(before, _)| before.rsplit_once('\''))
        .map(|(_, key)| key);
    key.is_some_and(|key| key == "PRIMARY" || key.ends_with(".PRIMARY"))
}

/// An error of a statement outside of COMMIT. Nothing was committed.
pub(crate) fn statement(error: Error) -> StoreError {
    let Error::Server(server) = &error else {
        return StoreError::new(
            StoreErrorKind::Unavailable,
            format!("connection lost: {error}"),
        )
        .with_source(error);
    };
    let (kind, hint) = match server.code {
        NO_SUCH_TABLE => (
            StoreErrorKind::Schema,
            "run migrate() or apply migrations/mysql/*.sql",
        ),
        1046 => (
            StoreErrorKind::Schema,
            "name the database in the URL: mysql://user@host/database",
        ),
        1049 => (
            StoreErrorKind::Schema,
            "create the database or correct the URL",
        ),
        1044 | 1142 | 1143 | 1227 | 1370 => (
            StoreErrorKind::Schema,
            "grant the user SELECT, INSERT and DELETE on the claim table, and CREATE, ALTER, INDEX, \
             DROP and CREATE VIEW for migrate()",
        ),
        1054 | 1136 | 1364 | 1366 | 1406 => (
            StoreErrorKind::Schema,
            "the claim table is not as migrations/mysql/*.sql make it; see check()",
        ),
        DUPLICATE_ENTRY => (
            StoreErrorKind::Schema,
            "an index other than the primary key refused the claim; see check()",
        ),
        1665 => (
            StoreErrorKind::Schema,
            "set binlog_format to ROW or MIXED, which READ COMMITTED needs",
        ),
        1290 | 1792 | 1836 => (
            StoreErrorKind::Unavailable,
            "the server is read-only; connect to the one that takes writes",
        ),
        1040
        | 1047
        | 1053
        | 1129
        | 1158..=1161
        | 1180
        | 1203
        | 1226
        | 1317
        | 1927
        | 1969
        | 4031 => (StoreErrorKind::Unavailable, "try again later"),
        1045 | 1698 => (
            StoreErrorKind::Unavailable,
            "correct user and password in the URL",
        ),
        code if is_conflict_code(code) || code == 1467 => {
            (StoreErrorKind::Conflict, "try again in a new transaction")
        }
        _ => (StoreErrorKind::Other, ""),
    };
    let separator = if hint.is_empty() { "" } else { ": " };
    StoreError::new(kind, format!("{server}{separator}{hint}")).with_source(error)
}

/// An error while a connection was made.
pub(crate) fn connecting(error: Error, address: &str) -> StoreError {
    match error {
        Error::Server(_) => statement(error),
        error => StoreError::new(
            StoreErrorKind::Unavailable,
            format!("can't connect to {address}: {error}"),
        )
        .with_source(error),
    }
}

pub(crate) fn in_flight() -> StoreError {
    StoreError::new(
        StoreErrorKind::InFlight,
        "another transaction held the key for the whole wait",
    )
}

/// Where the driver connects to, for messages.
pub(crate) fn address(opts: &Opts) -> String {
    match opts.socket() {
        Some(socket) => socket.to_owned(),
        None => format!("{}:{}", opts.ip_or_hostname(), opts.tcp_port()),
    }
}

/// Replies that don't belong to requests, on one connection after the other.
pub(crate) fn out_of_step() -> StoreError {
    StoreError::new(
        StoreErrorKind::Unavailable,
        "connections from the pool hold replies to requests that their last user abandoned",
    )
}

pub(crate) fn schema(message: impl Into<String>) -> StoreError {
    StoreError::new(StoreErrorKind::Schema, message.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn duplicate(message: &str) -> bool {
        names_primary_key(&ServerError {
            code: DUPLICATE_ENTRY,
            message: message.into(),
            state: "23000".into(),
        })
    }

    #[test]
    fn only_the_key_at_the_end_counts() {
        assert!(duplicate("Duplicate entry 'a-b' for key 'PRIMARY'"));
        assert!(duplicate(
            "Duplicate entry 'a-b' for key 'processed_events.PRIMARY'"
        ));
        assert!(!duplicate(
            "Duplicate entry 'for key 'PRIMARY'' for key 'other'"
        ));
        assert!(!duplicate("no quotes"));
    }

    #[test]
    fn a_deadlock_is_a_conflict_at_any_depth() {
        let deadlock = |code| {
            Error::Server(ServerError {
                code,
                message: String::new(),
                state: String::new(),
            })
        };
        let wrapped = std::io::Error::other(deadlock(DEADLOCK));
        assert!(is_conflict(
            &StoreError::new(StoreErrorKind::Other, "").with_source(wrapped)
        ));
        assert!(!is_conflict(&deadlock(DUPLICATE_ENTRY)));
    }
}
