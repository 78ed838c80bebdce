//! The contract, R1 to R18, on an SQLite file.

mod harness;

onceonly_conformance::suite!(harness::SqliteHarness<harness::File>);
onceonly_conformance::suite_records!(harness::SqliteHarness<harness::File>);
