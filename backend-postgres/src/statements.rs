//! Every statement that this crate runs on a claim's path, with the table's name in it.

use std::time::Duration;

use crate::settings::Isolation;
use crate::token::ClaimToken;

/// The statements of one store. All are sent as simple queries or as unnamed statements, so that a
/// pooler which shares server connections between clients can't mix them up.
#[derive(Debug)]
pub(crate) struct Statements {
    qualified: String,
    begin: String,
    claim: String,
    is_claimed: String,
    forget: String,
    fate: String,
}

impl Statements {
    /// `qualified` is the table's name, quoted, with its schema if it has one.
    pub(crate) fn new(qualified: String, isolation: Isolation) -> Self {
        Self {
            // One text for all claims: pg_stat_statements counts each SET of another value apart.
            begin: format!(
                "BEGIN ISOLATION LEVEL {}; SET LOCAL onceonly.claim = 'begun'",
                isolation.sql()
            ),
            claim: format!(
                "INSERT INTO {qualified} (source, event_id, event_type, received_at, claim_token) \
                 VALUES ($1, $2, $3, \
                 CASE WHEN current_setting('onceonly.claim', true) = 'begun' THEN \
                 CASE WHEN set_config('onceonly.claim', $4, true) = $4 THEN now() END END, $5) \
                 ON CONFLICT (source, event_id) DO NOTHING"
            ),
            is_claimed: format!("SELECT FROM {qualified} WHERE source = $1 AND event_id = $2"),
            forget: format!("DELETE FROM {qualified} WHERE source = $1 AND event_id = $2"),
            fate: format!(
                "SELECT (SELECT claim_token = $3 FROM {qualified} \
                 WHERE source = $1 AND event_id = $2), \
                 EXISTS (SELECT FROM pg_prepared_xacts WHERE database = current_database())"
            ),
            qualified,
        }
    }

    /// The table's name, quoted, with its schema if it has one.
    pub(crate) fn qualified(&self) -> &str {
        &self.qualified
    }

    /// Opens a transaction and marks it as the one that [`claim`](Self::claim) belongs to.
    pub(crate) fn begin(&self) -> &str {
        &self.begin
    }

    /// Inserts the claim: 1 row, or 0 where a committed claim exists; and marks the transaction with
    /// the claim's token until it ends. Outside the transaction that [`begin`](Self::begin) opened it
    /// fails with 23502 on `received_at`, so that it can be sent behind BEGIN without waiting for
    /// its answer. Parameters: source, event id, type, token as hex, token.
    pub(crate) fn claim(&self) -> &str {
        &self.claim
    }

    /// A row if a committed claim exists.
    pub(crate) fn is_claimed(&self) -> &str {
        &self.is_claimed
    }

    /// Deletes a committed claim.
    pub(crate) fn forget(&self) -> &str {
        &self.forget
    }

    /// One row: whether the committed claim is the one of this token (NULL where there is none),
    /// and whether a prepared transaction may hold it out of sight.
    pub(crate) fn fate(&self) -> &str {
        &self.fate
    }

    /// Deletes up to `limit` claims older than `older_than`, and commits.
    ///
    /// FOR UPDATE re-reads each row that it locks, so that its age is still right; locked rows stay
    /// where their ctid says.
    pub(crate) fn prune(&self, older_than: Duration, limit: u32) -> String {
        format!(
            "BEGIN ISOLATION LEVEL READ COMMITTED; \
             DELETE FROM {table} WHERE ctid = ANY (ARRAY (\
             SELECT ctid FROM {table} WHERE received_at < now() - interval '{} microseconds' \
             ORDER BY received_at LIMIT {limit} FOR UPDATE SKIP LOCKED)); \
             COMMIT",
            older_than.as_micros(),
            table = self.qualified
        )
    }
}

/// Commits, but only in the transaction of this claim. Anywhere else it fails with an error of
/// which [`GUARD_STATE`] is the code and which has the token in it, and COMMIT is not run.
pub(crate) fn commit(token: &ClaimToken) -> String {
    let token = token.hex();
    format!(
        "SELECT CASE WHEN current_setting('onceonly.claim', true) = '{token}' THEN '' \
         ELSE current_setting('onceonly.ended_{token}') END; COMMIT"
    )
}

/// undefined_object: `unrecognized configuration parameter "onceonly.ended_…"`.
pub(crate) const GUARD_STATE: &str = "42704";

/// `"name"`, with the quotes in it doubled.
pub(crate) fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_in_names_are_doubled() {
        assert_eq!(
            quote("a\"; DROP TABLE x; --"),
            "\"a\"\"; DROP TABLE x; --\""
        );
    }

    #[test]
    fn the_isolation_level_is_always_named() {
        let statements = Statements::new(quote("t"), Isolation::Serializable);
        assert!(
            statements
                .begin()
                .starts_with("BEGIN ISOLATION LEVEL SERIALIZABLE; ")
        );
    }
}
