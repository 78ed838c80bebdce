//! How `apply` can end its transaction on MySQL and MariaDB.

use onceonly::ClaimFate;
use onceonly_conformance::Escape;

const fn escape(name: &'static str, claim: ClaimFate) -> Escape {
    Escape { name, claim }
}

/// A deadlock rolls the whole transaction back; what `apply` runs after hiding it autocommits.
pub(crate) const HIDDEN_DEADLOCK: Escape = escape("a hidden deadlock (1213)", ClaimFate::Absent);

/// Statements, separated by `; `, and what has become of the claim after them.
pub(crate) const ALL: &[Escape] = &[
    escape("COMMIT", ClaimFate::Durable),
    escape("COMMIT AND CHAIN", ClaimFate::Durable),
    escape("COMMIT; BEGIN", ClaimFate::Durable),
    escape("COMMIT; BEGIN; SAVEPOINT onceonly", ClaimFate::Durable),
    escape("BEGIN", ClaimFate::Durable),
    escape("START TRANSACTION", ClaimFate::Durable),
    escape(
        "CREATE TABLE IF NOT EXISTS side_door (id INT)",
        ClaimFate::Durable,
    ),
    escape("ALTER TABLE scratch COMMENT 'altered'", ClaimFate::Durable),
    escape("TRUNCATE TABLE scratch", ClaimFate::Durable),
    escape("LOCK TABLES scratch WRITE", ClaimFate::Durable),
    escape("ANALYZE TABLE scratch", ClaimFate::Durable),
    escape("ROLLBACK", ClaimFate::Absent),
    escape("ROLLBACK AND CHAIN", ClaimFate::Absent),
    escape("ROLLBACK; BEGIN", ClaimFate::Absent),
    HIDDEN_DEADLOCK,
];
