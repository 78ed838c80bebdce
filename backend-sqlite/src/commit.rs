//! The proof that a transaction is still the claim's, and its COMMIT.

use onceonly::{ClaimFate, StoreError, StoreErrorKind};
use rusqlite::{Connection, ErrorCode, TransactionState};
use tracing::warn;

use crate::claim::{Identity, is_ours};
use crate::error::{failed, is_busy};
use crate::settings::journal_mode;
use crate::statements::{COMMIT, Statements};
use crate::writer::Writer;

/// Checks that the open transaction is the one that holds the claim, and that SQLite can commit
/// all of it at once. After an error nothing is open.
pub(crate) fn prove(
    writer: &mut Writer,
    claim: &Identity,
    statements: &Statements,
) -> Result<(), StoreError> {
    if !is_claims(writer) {
        let fate = settle(writer, claim, statements);
        return Err(ended(fate));
    }
    match written_elsewhere(writer.connection()) {
        Ok(None) => Ok(()),
        Ok(Some(database)) => Err(refused(
            writer,
            format!(
                "apply wrote to the attached database {database:?}, which SQLite does not commit \
                 atomically with the claim unless both have a rollback journal; keep effects in \
                 the claim's file"
            ),
        )),
        Err(error) => {
            Err(refused(writer, "attached databases can't be examined").with_source(error))
        }
    }
}

/// An attached file that the transaction wrote to and that would not be committed atomically with
/// the main one (<https://sqlite.org/lang_attach.html>).
fn written_elsewhere(connection: &Connection) -> rusqlite::Result<Option<String>> {
    let rollback_journal = |database: &str| -> rusqlite::Result<bool> {
        let mode = journal_mode(connection, database)?;
        Ok(matches!(mode.as_str(), "delete" | "truncate" | "persist"))
    };
    // 0 is main and 1 is temp, which nobody else sees.
    for index in 2.. {
        let Ok(database) = connection.db_name(index) else {
            break;
        };
        let written =
            connection.transaction_state(Some(database.as_str()))? == TransactionState::Write;
        if written && !(rollback_journal("main")? && rollback_journal(&database)?) {
            return Ok(Some(database));
        }
    }
    Ok(None)
}

/// What an attempt to commit came to.
pub(crate) enum Committed {
    Yes,
    /// The transaction is still open: readers of a rollback journal stand in the way.
    NotYet(Writer),
}

/// COMMIT.
///
/// What is definite is a list: a lock that was not had, and a constraint. After a full disk or an
/// I/O error SQLite rolls back and the claim reads as absent, but its frames may be complete in the
/// write-ahead log, where a recovery after a crash would find them, until the next writer overwrites
/// them: so these are unknown, and the next delivery is right either way.
pub(crate) fn commit(mut writer: Writer) -> Result<Committed, StoreError> {
    let committed = writer
        .connection()
        .prepare_cached(COMMIT)
        .and_then(|mut commit| commit.execute(()));
    let error = match committed {
        Ok(_) => return Ok(Committed::Yes),
        Err(error) => error,
    };
    if is_busy(&error) && !writer.connection().is_autocommit() {
        return Ok(Committed::NotYet(writer));
    }
    if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation)
        && !writer.connection().is_autocommit()
    {
        return Err(refused(&mut writer, "a deferred constraint is broken").with_source(error));
    }
    writer.discard();
    roll_back(&mut writer);
    Err(StoreError::new(
        StoreErrorKind::CommitUnknown,
        "SQLite reported an error at COMMIT; the next delivery finds out",
    )
    .with_source(error))
}

pub(crate) fn blocked(writer: &mut Writer) -> StoreError {
    roll_back(writer);
    StoreError::new(
        StoreErrorKind::Conflict,
        "other connections read the file for too long for a COMMIT with a rollback journal; end \
         them, or use a write-ahead log",
    )
}

fn refused(writer: &mut Writer, message: impl Into<std::borrow::Cow<'static, str>>) -> StoreError {
    roll_back(writer);
    StoreError::new(StoreErrorKind::CommitRefused, message)
}

/// Whether the open transaction is the one that the claim was made in. After `COMMIT; BEGIN` one is
/// open again, but without our savepoint.
fn is_claims(writer: &Writer) -> bool {
    !writer.connection().is_autocommit()
        && writer
            .connection()
            .prepare_cached(&writer.savepoint().release)
            .and_then(|mut release| release.execute(()))
            .is_ok()
}

/// After `apply` ended the claim's transaction: rolls back what is open instead of it, and says
/// what became of the claim.
fn settle(writer: &mut Writer, claim: &Identity, statements: &Statements) -> ClaimFate {
    writer.discard();
    roll_back(writer);
    if !writer.connection().is_autocommit() {
        return ClaimFate::Unknown;
    }
    match is_ours(writer.connection(), statements, claim) {
        Ok(true) => ClaimFate::Durable,
        Ok(false) => ClaimFate::Absent,
        Err(_) => ClaimFate::Unknown,
    }
}

fn ended(claim: ClaimFate) -> StoreError {
    StoreError::new(
        StoreErrorKind::TransactionEnded { claim },
        "COMMIT, ROLLBACK, OR ROLLBACK, RAISE(ROLLBACK) or a full disk inside apply; statements \
         after it were committed one by one",
    )
}

/// ROLLBACK. An error also where there is nothing to roll back any more because `apply` committed
/// the claim.
pub(crate) fn rollback(
    writer: &mut Writer,
    claim: &Identity,
    statements: &Statements,
) -> Result<(), StoreError> {
    if is_claims(writer) {
        return writer
            .roll_back()
            .map_err(|error| failed("rolling back, the connection is closed", error));
    }
    match settle(writer, claim, statements) {
        ClaimFate::Absent => Ok(()),
        fate => Err(ended(fate)),
    }
}

fn roll_back(writer: &mut Writer) {
    if let Err(error) = writer.roll_back() {
        warn!(error = %error, "rollback failed, the connection is closed");
    }
}
