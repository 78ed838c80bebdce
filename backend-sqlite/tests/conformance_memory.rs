//! The contract, R1 to R18, on a database in memory.

mod harness;

onceonly_conformance::suite!(harness::SqliteHarness<harness::Memory>);
onceonly_conformance::suite_records!(harness::SqliteHarness<harness::Memory>);
