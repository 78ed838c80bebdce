//! What a claim table has to look like.

use tokio_postgres::Row;

/// Name, type, NOT NULL, whether its collation compares bytes or at least never calls two different
/// texts equal, and whether an INSERT may leave it out.
pub(crate) const COLUMNS: &str = "\
    SELECT attname::text, format_type(atttypid, NULL), attnotnull, \
    coalesce(collisdeterministic, true), \
    atthasdef OR attidentity <> '' OR NOT attnotnull \
    FROM pg_attribute LEFT JOIN pg_collation ON pg_collation.oid = attcollation \
    WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped";

/// Each unique index and exclusion constraint: name, whether it is a primary key at work, its
/// columns.
pub(crate) const INDEXES: &str = "\
    SELECT indexrelid::regclass::text, indisprimary AND indimmediate AND indisvalid, \
    ARRAY(SELECT attname::text FROM pg_attribute \
          WHERE attrelid = indrelid AND attnum = ANY (indkey::int2[]) ORDER BY attname) \
    FROM pg_index WHERE indrelid = to_regclass($1) AND (indisunique OR indisexclusion)";

/// Enabled row triggers before INSERT, and rules.
pub(crate) const HOOKS: &str = "\
    SELECT 'trigger', tgname::text FROM pg_trigger \
    WHERE tgrelid = to_regclass($1) AND NOT tgisinternal AND tgenabled <> 'D' \
    AND tgtype & 1 = 1 AND tgtype & 2 = 2 AND tgtype & 4 = 4 \
    UNION ALL \
    SELECT 'rule', rulename::text FROM pg_rewrite \
    WHERE ev_class = to_regclass($1) AND ev_enabled <> 'D'";

const WANTED: [(&str, &str, bool); 5] = [
    ("source", "text", true),
    ("event_id", "text", true),
    ("event_type", "text", false),
    ("received_at", "timestamp with time zone", true),
    ("claim_token", "bytea", true),
];

/// The fault in the rows of [`COLUMNS`], if there is one.
pub(crate) fn columns(rows: &[Row]) -> Result<(), String> {
    let mut found = Vec::new();
    for row in rows {
        let (name, kind, not_null, deterministic, optional): (String, String, bool, bool, bool) = (
            get(row, 0)?,
            get(row, 1)?,
            get(row, 2)?,
            get(row, 3)?,
            get(row, 4)?,
        );
        match WANTED.iter().find(|(wanted, ..)| *wanted == name) {
            Some((_, wanted, _)) if *wanted != kind => {
                return Err(format!("has {name} as {kind}; it must be {wanted}"));
            }
            Some((_, _, true)) if !not_null => {
                return Err(format!("has {name} without NOT NULL"));
            }
            Some((_, _, false)) if not_null => {
                return Err(format!("has {name} as NOT NULL; it must allow NULL"));
            }
            Some(_) if !deterministic => {
                return Err(format!(
                    "has {name} with a nondeterministic collation, which takes different ids for \
                     the same; it must be COLLATE \"C\""
                ));
            }
            None if !optional => {
                return Err(format!(
                    "has a column {name} that needs a value; give it a default"
                ));
            }
            _ => found.push(name),
        }
    }
    match WANTED
        .iter()
        .find(|(wanted, ..)| !found.iter().any(|name| name == wanted))
    {
        Some((missing, ..)) => Err(format!("has no column {missing}")),
        None => Ok(()),
    }
}

/// The fault in the rows of [`INDEXES`], if there is one.
pub(crate) fn indexes(rows: &[Row]) -> Result<(), String> {
    let mut key = false;
    for row in rows {
        let (name, primary, columns): (String, bool, Vec<String>) =
            (get(row, 0)?, get(row, 1)?, get(row, 2)?);
        if primary && columns == ["event_id", "source"] {
            key = true;
        } else {
            return Err(format!(
                "has the unique index {name}, which can fake a duplicate; only a primary key of \
                 exactly (source, event_id), not deferrable, may be there"
            ));
        }
    }
    if key {
        Ok(())
    } else {
        Err("has no primary key (source, event_id)".to_owned())
    }
}

fn get<'a, T: tokio_postgres::types::FromSql<'a>>(
    row: &'a Row,
    column: usize,
) -> Result<T, String> {
    row.try_get(column).map_err(|error| error.to_string())
}
