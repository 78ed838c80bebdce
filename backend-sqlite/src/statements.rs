//! Every SQL text that runs more than once.

/// `name` as an identifier in SQL.
pub(crate) fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Microseconds since 1970 by SQLite's clock, which counts milliseconds.
macro_rules! now {
    () => {
        "(CAST(round(unixepoch('subsec') * 1000.0) AS INTEGER) * 1000)"
    };
}

pub(crate) const BEGIN: &str = "BEGIN IMMEDIATE";
pub(crate) const COMMIT: &str = "COMMIT";
pub(crate) const ROLLBACK: &str = "ROLLBACK";

/// The texts for one claim table. `main.` is always written: a temporary table of the same name,
/// which `apply` may make, would win otherwise.
#[derive(Debug)]
pub(crate) struct Statements {
    pub(crate) table: String,
    pub(crate) claim: String,
    pub(crate) is_claimed: String,
    pub(crate) token: String,
    pub(crate) any_older: String,
    pub(crate) prune: String,
    pub(crate) forget: String,
    pub(crate) history: String,
    pub(crate) create_history: String,
    pub(crate) record: String,
}

impl Statements {
    pub(crate) fn new(table: &str) -> Self {
        let events = format!("main.{}", quote(table));
        let history = format!("main.{}", quote(&history_table(table)));
        Self {
            table: table.to_owned(),
            claim: format!(
                "INSERT INTO {events} (source, event_id, event_type, received_at, claim_token) \
                 VALUES (?1, ?2, ?3, {now}, ?4) ON CONFLICT (source, event_id) DO NOTHING",
                now = now!()
            ),
            is_claimed: format!(
                "SELECT EXISTS (SELECT 1 FROM {events} WHERE source = ?1 AND event_id = ?2)"
            ),
            token: format!("SELECT claim_token FROM {events} WHERE source = ?1 AND event_id = ?2"),
            any_older: format!(
                "SELECT EXISTS (SELECT 1 FROM {events} WHERE received_at < {now} - ?1)",
                now = now!()
            ),
            prune: format!(
                "DELETE FROM {events} WHERE (source, event_id) IN (\
                 SELECT source, event_id FROM {events} WHERE received_at < {now} - ?1 \
                 ORDER BY received_at LIMIT ?2)",
                now = now!()
            ),
            forget: format!("DELETE FROM {events} WHERE source = ?1 AND event_id = ?2"),
            history: format!(
                "SELECT version, checksum, compatible_with FROM {history} ORDER BY version"
            ),
            create_history: format!(
                "CREATE TABLE IF NOT EXISTS {history} (version INTEGER NOT NULL PRIMARY KEY, \
                 name TEXT NOT NULL, checksum TEXT NOT NULL, compatible_with INTEGER NOT NULL, \
                 applied_at INTEGER NOT NULL) STRICT"
            ),
            record: format!(
                "INSERT INTO {history} (version, name, checksum, compatible_with, applied_at) \
                 VALUES (?1, ?2, ?3, ?4, {now})",
                now = now!()
            ),
        }
    }
}

pub(crate) fn history_table(table: &str) -> String {
    format!("{table}_migrations")
}
