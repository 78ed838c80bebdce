//! The conformance suite on MySQL or MariaDB.

mod harness;

use harness::MySqlHarness;

onceonly_conformance::suite!(MySqlHarness);
onceonly_conformance::suite_records!(MySqlHarness);
onceonly_conformance::approved_skips!(MySqlHarness, "skips.txt");
