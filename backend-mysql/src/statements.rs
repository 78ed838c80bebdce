//! Every SQL text. Values go in only as `x'…'` literals, which mean the same under any `sql_mode`.

use onceonly::{Event, EventId, Source};

use crate::proof::{Nonce, Token};

/// `NO CHAIN NO RELEASE` overrules the session's `completion_type`.
const ROLLBACK: &str = "ROLLBACK AND NO CHAIN NO RELEASE";
const COMMIT: &str = "COMMIT AND NO CHAIN NO RELEASE";
const BEGIN: &str = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; START TRANSACTION READ WRITE";
/// After an error: gives the session back the lock wait that [`Statements::contend`] took.
const RESTORE: &str = "SET SESSION innodb_lock_wait_timeout = @onceonly_lock_wait";

/// How many statements [`Statements::claim`] has.
pub(crate) const CLAIM_STATEMENTS: usize = 6;

/// A key that is pruned may have been pruned and claimed again by others in the meantime: seconds
/// before the batch lets go of its locks.
const PRUNE_LOCK_WAIT: u64 = 1;

/// The texts for one claim table.
#[derive(Debug, Clone)]
pub(crate) struct Statements {
    /// Quoted.
    table: String,
}

impl Statements {
    pub(crate) fn new(table: &str) -> Self {
        Self {
            table: quoted(table),
        }
    }

    /// Opens a transaction, inserts, and sets the savepoint that shows at the commit whether it is
    /// still the same one.
    pub(crate) fn claim(&self, event: &Event, token: Token, nonce: Nonce, seconds: u64) -> String {
        let event_type = event
            .event_type()
            .map_or_else(|| "NULL".to_owned(), |name| literal(name.as_str()));
        let insert = format!(
            "INSERT /* {nonce} */ INTO {} (source, event_id, event_type, received_at, claim_token) \
             VALUES ({}, {}, {event_type}, UTC_TIMESTAMP(6), x'{token}'); SAVEPOINT {}",
            self.table,
            literal(event.source().as_str()),
            literal(event.id().as_str()),
            savepoint(token),
        );
        contend(seconds, &insert)
    }

    /// Deletes a committed claim and commits.
    pub(crate) fn forget(
        &self,
        source: &Source,
        id: &EventId,
        nonce: Nonce,
        done: Nonce,
        seconds: u64,
    ) -> String {
        let delete = format!(
            "DELETE /* {nonce} */ FROM {} WHERE {}; SELECT ROW_COUNT()",
            self.table,
            key(source, id),
        );
        format!("{}; {COMMIT}; SELECT x'{done}'", contend(seconds, &delete))
    }

    /// The committed claim of a key: its token, or no row.
    pub(crate) fn read(&self, source: &Source, id: &EventId, nonce: Nonce) -> String {
        format!(
            "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; START TRANSACTION READ ONLY; \
             SELECT claim_token FROM {} WHERE {}; {ROLLBACK}; SELECT x'{nonce}'",
            self.table,
            key(source, id),
        )
    }

    /// Keys of old claims, read without a lock.
    pub(crate) fn expired(&self, micros: u64, limit: u32, nonce: Nonce) -> String {
        format!(
            "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; START TRANSACTION READ ONLY; \
             SELECT source, event_id FROM {} WHERE received_at < {} \
             ORDER BY received_at LIMIT {limit}; {ROLLBACK}; SELECT x'{nonce}'",
            self.table,
            cutoff(micros),
        )
    }

    /// Deletes these keys, each by the primary key and only if it is still that old, and commits.
    pub(crate) fn prune(
        &self,
        keys: &[(Vec<u8>, Vec<u8>)],
        micros: u64,
        nonce: Nonce,
        done: Nonce,
    ) -> String {
        let cutoff = cutoff(micros);
        let deletes: Vec<String> = keys
            .iter()
            .map(|(source, id)| {
                // The sum keeps the index on received_at, which holds open claims, out of the plan.
                format!(
                    "DELETE /* {nonce} */ FROM {} WHERE source = x'{}' AND event_id = x'{}' \
                     AND received_at + INTERVAL 0 SECOND < {cutoff}",
                    self.table,
                    hex::encode(source),
                    hex::encode(id),
                )
            })
            .collect();
        format!(
            "{}; {COMMIT}; SELECT x'{done}'",
            contend(PRUNE_LOCK_WAIT, &deletes.join("; "))
        )
    }
}

/// Ends the transaction that set the token's savepoint. The server stops at the first statement that
/// fails, so a lost savepoint keeps COMMIT from running.
pub(crate) fn commit(token: Token, nonce: Nonce) -> String {
    format!(
        "RELEASE SAVEPOINT {}; {COMMIT}; SELECT x'{nonce}'",
        savepoint(token)
    )
}

/// Ends whatever is open, table locks included.
pub(crate) fn rollback(nonce: Nonce) -> String {
    format!("{ROLLBACK}; UNLOCK TABLES; SELECT x'{nonce}'")
}

/// As [`rollback`], after a statement of [`contend`] failed.
pub(crate) fn recover(nonce: Nonce) -> String {
    format!("{ROLLBACK}; {RESTORE}; UNLOCK TABLES; SELECT x'{nonce}'")
}

/// The claim's savepoint, as the server's errors spell it.
pub(crate) fn savepoint(token: Token) -> String {
    format!("onceonly_{token}")
}

pub(crate) fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A text that compares as text.
pub(crate) fn text(value: &str) -> String {
    format!("_utf8mb4 x'{}'", hex::encode(value))
}

/// Bytes.
pub(crate) fn literal(value: &str) -> String {
    format!("x'{}'", hex::encode(value))
}

fn key(source: &Source, id: &EventId) -> String {
    format!(
        "source = {} AND event_id = {}",
        literal(source.as_str()),
        literal(id.as_str())
    )
}

fn cutoff(micros: u64) -> String {
    format!("UTC_TIMESTAMP(6) - INTERVAL {micros} MICROSECOND")
}

/// Goes before [`contend`] where the session is not known: its answer shows that replies belong to
/// requests, and where the session lives.
pub(crate) fn greeting(nonce: Nonce) -> String {
    format!("SELECT x'{nonce}', @@hostname, @@port; ")
}

/// A transaction whose statements (marked with the nonce, see [`crate::kill`]) wait for locks at most
/// so many seconds, while the session's own setting comes back before anybody else runs a statement.
fn contend(seconds: u64, statements: &str) -> String {
    format!(
        "SET @onceonly_lock_wait = @@SESSION.innodb_lock_wait_timeout, \
         SESSION innodb_lock_wait_timeout = {seconds}; {BEGIN}; {statements}; {RESTORE}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_quotes_stay_one_name() {
        assert_eq!(quoted("a`b; DROP TABLE c"), "`a``b; DROP TABLE c`");
    }

    #[test]
    fn a_claim_has_as_many_statements_as_it_says() {
        let event = Event::new("a", "b").unwrap();
        let sql = Statements::new("t").claim(&event, Token::random(), Nonce::random(), 2);
        assert_eq!(sql.split("; ").count(), CLAIM_STATEMENTS);
    }

    #[test]
    fn values_never_leave_their_literal() {
        let event = Event::new("a'; DROP TABLE b; --", "\\' OR \"\"").unwrap();
        let sql = Statements::new("t").claim(&event, Token::random(), Nonce::random(), 2);
        assert!(!sql.contains("DROP") && !sql.contains('\\') && !sql.contains('"'));
    }
}
