//! The rules of the contract, in a line each, for the messages of cases that fail.

const RULES: &[(&str, &str)] = &[
    ("r0", "R1 to R18, in a random order"),
    (
        "r1",
        "R1 atomic: claim and effects are committed together, or neither is there",
    ),
    (
        "r2",
        "R2 duplicate waits: a racing claim of a key waits while the first is open",
    ),
    (
        "r3",
        "R3 rollback releases: the first rolls back, and exactly one waiter processes, without an error",
    ),
    (
        "r4",
        "R4 honest answers: Duplicate only for a committed claim, Processed only for a confirmed COMMIT",
    ),
    (
        "r5",
        "R5 drop safe: any future, and the transaction, may be dropped at any await",
    ),
    (
        "r6",
        "R6 bounded wait: when `wait` has passed the answer is InFlight, and the connection is free again",
    ),
    (
        "r7",
        "R7 exact keys: source and event id are compared byte for byte",
    ),
    (
        "r8",
        "R8 apply error: it rolls back, comes back unchanged, and the next delivery processes",
    ),
    (
        "r9",
        "R9 apply panic: it rolls back, goes on, and the next delivery processes",
    ),
    (
        "r10",
        "R10 swallowed error: a doomed transaction is an error, never Processed",
    ),
    (
        "r11",
        "R11 escaped transaction: apply ended it: a distinct error that says what became of the claim",
    ),
    (
        "r12",
        "R12 unknown commit: a connection lost during COMMIT is CommitUnknown, and the next delivery is right",
    ),
    (
        "r13",
        "R13 conflicts: retried inside while claiming, a retryable error or a re-run after that",
    ),
    (
        "r14",
        "R14 prune: only what is older by the database's clock, at most `limit`, no claim disturbed",
    ),
    (
        "r15",
        "R15 durable: what was Processed outlives a kill, and settings that would lose it are refused",
    ),
    (
        "r16",
        "R16 migrate: idempotent, safe at once, refuses what it does not understand, names the fix",
    ),
    (
        "r17",
        "R17 storm: racing duplicates of one event leave other events their connections",
    ),
    (
        "r18",
        "R18 savepoints: one inside apply rolls back without harming the claim",
    ),
    (
        "records",
        "ClaimRecords: committed claims can be looked up and forgotten",
    ),
];

/// The rule that a case of this name checks.
pub(crate) fn of(case: &str) -> &'static str {
    let prefix = case.split('_').next().unwrap_or(case);
    let rule = RULES.iter().find(|(name, _)| *name == prefix);
    rule.map_or("no rule of the contract", |(_, text)| text)
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_case_has_a_rule() {
        for case in include_str!("../cases.txt").lines() {
            assert_ne!(super::of(case), "no rule of the contract", "{case}");
        }
    }
}
