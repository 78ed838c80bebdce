//! Unfit schemas and unsafe settings that `check()` has to find.

/// One of them: what it is, a pragma of the store's connections, and changes of the good schema.
pub(crate) struct Spoil {
    name: &'static str,
    pub(crate) setting: Option<&'static str>,
    change: (&'static str, &'static str),
    after: &'static str,
}

const GOOD: &str = "
    CREATE TABLE processed_events (
        source TEXT NOT NULL, event_id TEXT NOT NULL, event_type TEXT,
        received_at INTEGER NOT NULL, claim_token BLOB NOT NULL,
        PRIMARY KEY (source, event_id)
    ) STRICT;";

const fn setting(name: &'static str) -> Spoil {
    Spoil {
        name,
        setting: Some(name),
        change: ("", ""),
        after: "",
    }
}

const fn change(name: &'static str, from: &'static str, to: &'static str) -> Spoil {
    Spoil {
        name,
        setting: None,
        change: (from, to),
        after: "",
    }
}

const fn after(name: &'static str) -> Spoil {
    Spoil {
        name,
        setting: None,
        change: ("", ""),
        after: name,
    }
}

const SPOILS: [Spoil; 16] = [
    setting("PRAGMA synchronous = NORMAL"),
    setting("PRAGMA synchronous = OFF"),
    setting("PRAGMA locking_mode = EXCLUSIVE"),
    change("the table is not STRICT", ") STRICT", ")"),
    change(
        "event_id has numeric affinity",
        "event_id TEXT",
        "event_id INTEGER",
    ),
    change("event_id takes any type", "event_id TEXT", "event_id ANY"),
    change(
        "event_id folds case",
        "event_id TEXT NOT NULL",
        "event_id TEXT NOT NULL COLLATE NOCASE",
    ),
    change(
        "source is trimmed",
        "source TEXT NOT NULL",
        "source TEXT NOT NULL COLLATE RTRIM",
    ),
    change(
        "event_type is NOT NULL",
        "event_type TEXT",
        "event_type TEXT NOT NULL",
    ),
    change("claim_token is missing", "claim_token BLOB NOT NULL,", ""),
    change(
        "the key is event_id alone",
        "KEY (source, event_id)",
        "KEY (event_id)",
    ),
    change(
        "the key has a third column",
        "KEY (source, event_id)",
        "KEY (source, event_id, received_at)",
    ),
    change(
        "a column needs a value",
        "event_type TEXT,",
        "event_type TEXT, tenant TEXT NOT NULL,",
    ),
    after("CREATE UNIQUE INDEX other ON processed_events (event_id)"),
    after("CREATE TRIGGER skip BEFORE INSERT ON processed_events BEGIN SELECT RAISE(IGNORE); END"),
    after(
        "ALTER TABLE processed_events RENAME TO old; CREATE VIEW processed_events AS SELECT * FROM old",
    ),
];

pub(crate) const NAMES: &[&str] = &{
    let mut names = [""; SPOILS.len()];
    let mut index = 0;
    while index < SPOILS.len() {
        names[index] = SPOILS[index].name;
        index += 1;
    }
    names
};

pub(crate) fn find(name: &str) -> Option<&'static Spoil> {
    SPOILS.iter().find(|spoil| spoil.name == name)
}

impl Spoil {
    /// Makes the claim table anew, unfit.
    pub(crate) fn schema(&self) -> String {
        let (from, to) = self.change;
        let table = if from.is_empty() {
            GOOD.to_owned()
        } else {
            GOOD.replacen(from, to, 1)
        };
        format!("DROP TABLE processed_events; {table} {}", self.after)
    }
}
