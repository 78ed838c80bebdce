//! What the server's and the driver's errors mean for a claim.

use std::error::Error;

use deadpool_postgres::PoolError;
use onceonly::{StoreError, StoreErrorKind};
use tokio_postgres::error::{DbError, Severity, SqlState};

/// The error of a statement that ran before any COMMIT, so that nothing was committed.
pub(crate) fn failed(error: tokio_postgres::Error, doing: &str) -> StoreError {
    let kind = kind(&error);
    let advice = error.code().and_then(advice).unwrap_or_default();
    StoreError::new(kind, format!("{doing}: {}{advice}", describe(&error))).with_source(error)
}

/// No connection came out of the pool.
pub(crate) fn no_connection(error: PoolError) -> StoreError {
    let message = match &error {
        PoolError::Backend(error) => {
            let advice = match error.code() {
                Some(code) => advice(code).unwrap_or_default(),
                None => "; does the server run, and are host, port and sslmode of the URL right?",
            };
            format!("cannot connect: {}{advice}", describe(error))
        }
        PoolError::Closed => "the pool is closed".to_owned(),
        _ => format!("no connection: {error}"),
    };
    StoreError::new(StoreErrorKind::Unavailable, message).with_source(error)
}

fn kind(error: &tokio_postgres::Error) -> StoreErrorKind {
    let Some(db) = error.as_db_error() else {
        return StoreErrorKind::Unavailable;
    };
    if !is_plain_error(db) {
        return StoreErrorKind::Unavailable;
    }
    match db.code().code() {
        "40001" | "40P01" => StoreErrorKind::Conflict,
        // undefined_table, _column, invalid_schema_name, no matching unique index, wrong types,
        // insufficient_privilege
        "42P01" | "42703" | "3F000" | "42P10" | "42804" | "42883" | "42501" => {
            StoreErrorKind::Schema
        }
        // read_only_sql_transaction; idle and transaction timeouts
        "25006" | "25P03" | "25P04" => StoreErrorKind::Unavailable,
        code => match code.get(..2) {
            Some("08" | "53" | "57" | "58") => StoreErrorKind::Unavailable,
            _ => StoreErrorKind::Other,
        },
    }
}

fn advice(code: &SqlState) -> Option<&'static str> {
    Some(match code.code() {
        "42P01" | "3F000" => "; run migrate() or apply migrations/postgres/*.sql",
        "42703" | "42P10" | "42804" | "42883" => {
            "; the claim table is not the one of migrations/postgres/*.sql"
        }
        "42501" => "; GRANT SELECT, INSERT, UPDATE, DELETE on the claim table to this role",
        "25006" => "; the server is a standby, or default_transaction_read_only is on",
        "28P01" | "28000" => "; check user and password of the URL, and the server's pg_hba.conf",
        "3D000" => "; check the database in the URL, or create it",
        "53300" => "; raise the server's max_connections or lower the pool's",
        _ => return None,
    })
}

/// An error of a statement; FATAL and PANIC end the connection.
pub(crate) fn is_plain_error(error: &DbError) -> bool {
    match error.parsed_severity() {
        Some(severity) => severity == Severity::Error,
        // Servers before 9.6 and some poolers send only the translated word.
        None => error.severity() == "ERROR",
    }
}

/// The SQLSTATE of a statement's error; none when the connection was lost.
pub(crate) fn plain_code(error: &tokio_postgres::Error) -> Option<&str> {
    error
        .as_db_error()
        .filter(|db| is_plain_error(db))
        .map(|db| db.code().code())
}

/// Serialization failure or deadlock, at any depth.
pub(crate) fn is_conflict(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        let code = error
            .downcast_ref::<tokio_postgres::Error>()
            .and_then(tokio_postgres::Error::code)
            .or_else(|| error.downcast_ref::<DbError>().map(DbError::code));
        if let Some(code) = code {
            return *code == SqlState::T_R_SERIALIZATION_FAILURE
                || *code == SqlState::T_R_DEADLOCK_DETECTED;
        }
        next = error.source();
    }
    false
}

/// The server's message and code, or all that the driver says; never its DETAIL, which holds data.
fn describe(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(db) => format!("{} (SQLSTATE {})", db.message(), db.code().code()),
        None => chain(error),
    }
}

/// An error and its sources in one line.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        text.push_str(": ");
        text.push_str(&error.to_string());
        next = error.source();
    }
    text
}
