//! The contract, R1 to R18, on PostgreSQL.

mod harness;

onceonly_conformance::suite!(harness::PostgresHarness);
onceonly_conformance::suite_records!(harness::PostgresHarness);
onceonly_conformance::approved_skips!(harness::PostgresHarness, "skips.txt");
