//! How `apply` can end its transaction on SQLite.

use onceonly::ClaimFate;
use onceonly_conformance::{Escape, HarnessError};
use onceonly_sqlite::SqliteTx;
use onceonly_sqlite::rusqlite::ErrorCode;

const fn escape(name: &'static str, claim: ClaimFate) -> Escape {
    Escape { name, claim }
}

const FULL_DISK: Escape = escape("a hidden full disk", ClaimFate::Absent);

/// A conflict that rolls everything back, and a trigger that does.
const HIDDEN_ERRORS: [Escape; 2] = [
    escape(
        "INSERT OR ROLLBACK INTO counters VALUES (1)",
        ClaimFate::Absent,
    ),
    escape("DELETE FROM counters", ClaimFate::Absent),
];

pub(crate) const ALL: &[Escape] = &[
    escape("COMMIT", ClaimFate::Durable),
    escape("END", ClaimFate::Durable),
    escape("COMMIT; BEGIN", ClaimFate::Durable),
    escape(
        "COMMIT; BEGIN IMMEDIATE; SAVEPOINT onceonly",
        ClaimFate::Durable,
    ),
    escape("COMMIT; SAVEPOINT onceonly", ClaimFate::Durable),
    escape("ROLLBACK", ClaimFate::Absent),
    escape("ROLLBACK; BEGIN", ClaimFate::Absent),
    escape("ROLLBACK; BEGIN IMMEDIATE", ClaimFate::Absent),
    HIDDEN_ERRORS[0],
    HIDDEN_ERRORS[1],
    FULL_DISK,
];

pub(crate) fn run(tx: &SqliteTx, escape: &Escape) -> Result<(), HarnessError> {
    if *escape == FULL_DISK {
        return fill_the_disk(tx);
    }
    let result = tx.execute_batch(escape.name);
    if HIDDEN_ERRORS.contains(escape) {
        return match result {
            Ok(()) => Err("the statement did not fail".into()),
            Err(_hidden) => Ok(()),
        };
    }
    Ok(result?)
}

fn fill_the_disk(tx: &SqliteTx) -> Result<(), HarnessError> {
    let pages: i64 = tx.pragma_query_value(None, "page_count", |row| row.get(0))?;
    tx.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?;
    let big = "INSERT INTO ledger VALUES (hex(zeroblob(1000000)))";
    match tx.execute(big, ()) {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DiskFull) => Ok(()),
        other => Err(format!("the disk was not full: {other:?}").into()),
    }
}
