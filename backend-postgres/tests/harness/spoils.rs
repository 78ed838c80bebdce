//! Schemas and settings that lose or double events on PostgreSQL.

const SPOILS: &[(&str, &str)] = &[
    ("synchronous_commit is off", "ALTER DATABASE {database} SET synchronous_commit = off"),
    (
        "the id has a nondeterministic collation",
        "CREATE COLLATION folding (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
         ALTER TABLE processed_events ALTER event_id TYPE text COLLATE folding",
    ),
    ("the id is char(255)", "ALTER TABLE processed_events ALTER event_id TYPE char(255)"),
    (
        "the key lacks the source",
        "ALTER TABLE processed_events DROP CONSTRAINT processed_events_pkey;
         ALTER TABLE processed_events ADD PRIMARY KEY (event_id)",
    ),
    ("there is no key", "ALTER TABLE processed_events DROP CONSTRAINT processed_events_pkey"),
    (
        "there is another unique index",
        "CREATE UNIQUE INDEX other ON processed_events (event_type)",
    ),
    (
        "a trigger drops inserts",
        "CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
         CREATE TRIGGER nothing BEFORE INSERT ON processed_events
         FOR EACH ROW EXECUTE FUNCTION nothing()",
    ),
    (
        "the key is deferrable",
        "ALTER TABLE processed_events DROP CONSTRAINT processed_events_pkey;
         ALTER TABLE processed_events ADD PRIMARY KEY (source, event_id) DEFERRABLE",
    ),
    (
        "received_at has no time zone",
        "ALTER TABLE processed_events ALTER received_at TYPE timestamp",
    ),
    (
        "the type is demanded",
        "ALTER TABLE processed_events ALTER event_type SET NOT NULL",
    ),
    (
        "another column is demanded",
        "ALTER TABLE processed_events ADD tenant text NOT NULL",
    ),
    (
        "a rule drops inserts",
        "CREATE RULE nothing AS ON INSERT TO processed_events DO INSTEAD NOTHING",
    ),
    ("the table is unlogged", "ALTER TABLE processed_events SET UNLOGGED"),
];

pub(super) const NAMES: &[&str] = &{
    let mut names = [""; SPOILS.len()];
    let mut i = 0;
    while i < names.len() {
        names[i] = SPOILS[i].0;
        i += 1;
    }
    names
};

/// What makes a world unfit in this way.
pub(super) fn sql(name: &str) -> Option<&'static str> {
    SPOILS
        .iter()
        .find(|(spoil, _)| *spoil == name)
        .map(|(_, sql)| *sql)
}
