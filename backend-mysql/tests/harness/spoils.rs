//! Schemas and settings that lose or double events on MySQL and MariaDB.

const SPOILS: &[(&str, &str)] = &[
    (
        "the table is MyISAM",
        "ALTER TABLE processed_events ENGINE = MyISAM",
    ),
    (
        "the id folds case",
        "ALTER TABLE processed_events MODIFY event_id VARCHAR(191)
         CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci NOT NULL",
    ),
    (
        "the id is short",
        "ALTER TABLE processed_events MODIFY event_id VARBINARY(64) NOT NULL",
    ),
    (
        "the key lacks the source",
        "ALTER TABLE processed_events DROP PRIMARY KEY, ADD PRIMARY KEY (event_id)",
    ),
    (
        "there is no key",
        "ALTER TABLE processed_events DROP PRIMARY KEY",
    ),
    (
        "there is another unique index",
        "ALTER TABLE processed_events ADD UNIQUE KEY other (event_type)",
    ),
    (
        "a trigger changes inserts",
        "CREATE TRIGGER changing BEFORE INSERT ON processed_events
         FOR EACH ROW SET NEW.event_id = LOWER(NEW.event_id)",
    ),
];

pub(crate) const NAMES: &[&str] = &{
    let mut names = [""; SPOILS.len()];
    let mut i = 0;
    while i < names.len() {
        names[i] = SPOILS[i].0;
        i += 1;
    }
    names
};

/// What makes a world unfit in this way.
pub(crate) fn sql(name: &str) -> Option<&'static str> {
    SPOILS
        .iter()
        .find(|(spoil, _)| *spoil == name)
        .map(|(_, sql)| *sql)
}
