//! How `apply` can end its transaction on PostgreSQL.

use onceonly::ClaimFate;
use onceonly_conformance::Escape;

const fn escape(name: &'static str, claim: ClaimFate) -> Escape {
    Escape { name, claim }
}

/// Statements, separated by `; `, and what has become of the claim after them.
pub(super) const ALL: &[Escape] = &[
    escape("COMMIT", ClaimFate::Durable),
    escape("END", ClaimFate::Durable),
    escape("COMMIT AND CHAIN", ClaimFate::Durable),
    escape("COMMIT; BEGIN", ClaimFate::Durable),
    escape("COMMIT; BEGIN; SAVEPOINT onceonly", ClaimFate::Durable),
    escape("ROLLBACK", ClaimFate::Absent),
    escape("ABORT", ClaimFate::Absent),
    escape("ROLLBACK AND CHAIN", ClaimFate::Absent),
    escape("ROLLBACK; BEGIN", ClaimFate::Absent),
];
