//! One numbered change of the schema.

use sha2::{Digest, Sha256};

/// The claim table's name unless a team configures another.
pub const DEFAULT_TABLE: &str = "processed_events";

/// One numbered change of the schema. Once released it never changes.
///
/// ```
/// let first = onceonly_migrations::SQLITE[0];
/// assert_eq!((first.version(), first.name()), (1, "claims"));
/// assert_eq!(first.checksum().len(), 64);
/// let sql = first.sql_for("\"claims of team a\"", "claims of team a");
/// assert!(sql.contains("CREATE TABLE \"claims of team a\" ("));
/// assert!(sql.contains("INDEX \"claims of team a_received_at\""));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Migration {
    version: u32,
    compatible_with: u32,
    name: &'static str,
    sql: &'static str,
    quote: char,
}

impl Migration {
    pub(crate) const fn new(
        version: u32,
        compatible_with: u32,
        name: &'static str,
        sql: &'static str,
        quote: char,
    ) -> Self {
        Self {
            version,
            compatible_with,
            name,
            sql,
            quote,
        }
    }

    /// Its place in the order, from 1 without gaps.
    #[must_use]
    pub const fn version(&self) -> u32 {
        self.version
    }

    /// The oldest version of the schema that a program may be built for and still run on a database
    /// with this migration applied: rolling deploys rely on it.
    #[must_use]
    pub const fn compatible_with(&self) -> u32 {
        self.compatible_with
    }

    /// Its name, as in its file's.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Its SQL with the default names, byte for byte as in its file.
    #[must_use]
    pub const fn sql(&self) -> &'static str {
        self.sql
    }

    /// SHA-256 of the file, in lower-case hex.
    #[must_use]
    pub fn checksum(&self) -> String {
        hex::encode(Sha256::digest(self.sql))
    }

    /// Its SQL for a table of another name.
    ///
    /// `qualified` stands for the table wherever the file names it, so it comes quoted and with its
    /// schema if it has one; `table` is the bare name from which the names of indexes and views are
    /// made, which this quotes.
    #[must_use]
    pub fn sql_for(&self, qualified: &str, table: &str) -> String {
        let quote = self.quote;
        let doubled = table.replace(quote, &format!("{quote}{quote}"));
        let named = format!("{quote}{DEFAULT_TABLE}");
        // In one pass: a name that was put in is never taken for one that the file wrote.
        let mut pieces = self.sql.split(&named);
        let mut sql = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            match piece.strip_prefix(quote) {
                Some(after) => {
                    sql.push_str(qualified);
                    sql.push_str(after);
                }
                None => {
                    sql.push(quote);
                    sql.push_str(&doubled);
                    sql.push_str(piece);
                }
            }
        }
        sql
    }
}
