//! The contract, R1 to R18, on files with both kinds of journal and in memory.

mod harness;

mod file {
    onceonly_conformance::suite!(crate::harness::SqliteHarness<crate::harness::File>);
    onceonly_conformance::suite_records!(crate::harness::SqliteHarness<crate::harness::File>);
    onceonly_conformance::approved_skips!(
        crate::harness::SqliteHarness<crate::harness::File>,
        "skips.txt"
    );
}

mod rollback_journal {
    onceonly_conformance::suite!(crate::harness::SqliteHarness<crate::harness::RollbackJournal>);
    onceonly_conformance::suite_records!(
        crate::harness::SqliteHarness<crate::harness::RollbackJournal>
    );
}

mod memory {
    onceonly_conformance::suite!(crate::harness::SqliteHarness<crate::harness::Memory>);
    onceonly_conformance::suite_records!(crate::harness::SqliteHarness<crate::harness::Memory>);
    onceonly_conformance::approved_skips!(
        crate::harness::SqliteHarness<crate::harness::Memory>,
        "skips_memory.txt"
    );
}
