//! The files are numbered without gaps, all of them are in the lists, and none changes once released.

#![allow(clippy::unwrap_used, reason = "a test states what it expects")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use onceonly_migrations::{DEFAULT_TABLE, MYSQL, Migration, POSTGRES, SQLITE};

const LISTS: [(&str, &[Migration]); 3] =
    [("mysql", MYSQL), ("postgres", POSTGRES), ("sqlite", SQLITE)];

fn files(database: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(database);
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn file_of(migration: &Migration) -> String {
    format!("{:04}_{}.sql", migration.version(), migration.name())
}

#[test]
fn every_file_is_in_its_list_and_numbered_without_gaps() {
    for (database, list) in LISTS {
        let listed: Vec<String> = list.iter().map(file_of).collect();
        assert_eq!(files(database), listed, "{database}");
        for (migration, number) in list.iter().zip(1..) {
            assert_eq!(migration.version(), number, "{database}");
            assert!(migration.compatible_with() <= number, "{database}");
        }
    }
}

/// `released.sha256` gets a line with each release and never loses or changes one: databases out
/// there have these checksums in their history.
#[test]
fn released_files_are_unchanged() {
    let checksums: BTreeMap<String, String> = LISTS
        .iter()
        .flat_map(|(database, list)| {
            list.iter().map(move |migration| {
                (
                    format!("{database}/{}", file_of(migration)),
                    migration.checksum(),
                )
            })
        })
        .collect();
    for line in include_str!("../released.sha256").lines() {
        let (released, file) = line.split_once("  ").unwrap();
        let now = checksums.get(file).map(String::as_str);
        assert_eq!(
            now,
            Some(released),
            "{file} was released; write a new migration instead of changing it"
        );
    }
}

#[test]
fn names_that_resemble_the_default_are_put_in_once() {
    for (database, list) in LISTS {
        let quote = if database == "mysql" { '`' } else { '"' };
        for name in [
            "processed_events_2",
            "processed_events",
            "a",
            "processed_events_processed_events",
        ] {
            let qualified = format!("{quote}{name}{quote}");
            let sql = list[0].sql_for(&qualified, name);
            assert!(
                sql.contains(&format!("CREATE TABLE {qualified} (")),
                "{sql}"
            );
            let index = format!("{quote}{name}_received_at{quote}");
            assert!(sql.contains(&index), "{sql}");
            let mentions = sql.matches(&format!("{quote}{name}")).count();
            let written = list[0]
                .sql()
                .matches(&format!("{quote}{DEFAULT_TABLE}"))
                .count();
            assert_eq!(mentions, written, "{sql}");
        }
    }
}

#[test]
fn default_names_give_the_file_as_it_is() {
    for (database, list) in LISTS {
        let quote = if database == "mysql" { '`' } else { '"' };
        for migration in list {
            let qualified = format!("{quote}{DEFAULT_TABLE}{quote}");
            assert_eq!(
                migration.sql_for(&qualified, DEFAULT_TABLE),
                migration.sql()
            );
        }
    }
}

#[test]
fn quotes_in_a_name_are_doubled() {
    let sql = SQLITE[0].sql_for("\"a \"\" b\"", "a \" b");
    assert!(
        sql.contains("CREATE INDEX \"a \"\" b_received_at\" ON \"a \"\" b\" (received_at)"),
        "{sql}"
    );
}
