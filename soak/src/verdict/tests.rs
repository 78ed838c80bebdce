use super::{Verdict, Wrong};
use crate::delivery::{Answer, PlanKind};
use crate::evidence::Evidence;
use crate::journal::Line;

/// A delivery of event 0 whose tickets are `began`, `began + 1` (commit) and `ended`.
fn line(delivery: u64, began: u64, ended: u64, answer: Answer) -> Line {
    Line {
        delivery,
        event: 0,
        plan: PlanKind::Plain,
        began,
        commit_began: answer.may_have_committed().then_some(began + 1),
        ended,
        answer,
    }
}

/// Event 0 with these effects and so many claims.
fn evidence(effects: &[i64], claims: usize) -> Evidence {
    let claims = vec![("soak".to_owned(), "evt_0".to_owned()); claims];
    Evidence::of(effects.iter().map(|delivery| (0, *delivery)), claims).unwrap()
}

fn wrongs(lines: &[Line], evidence: &Evidence) -> Vec<Wrong> {
    let verdict = Verdict::of(1, lines, evidence);
    verdict.wrongs.into_keys().collect()
}

#[test]
fn a_run_without_fault_is_not_wrong() {
    let lines = [
        line(0, 1, 4, Answer::PlantedError),
        line(1, 5, 9, Answer::Processed),
        line(2, 3, 10, Answer::Duplicate),
    ];
    assert_eq!(wrongs(&lines, &evidence(&[1], 1)), []);
}

#[test]
fn a_drop_in_its_commit_may_have_committed() {
    let lines = [
        line(0, 1, 3, Answer::DroppedInCommit),
        line(1, 4, 5, Answer::Duplicate),
    ];
    assert_eq!(wrongs(&lines, &evidence(&[0], 1)), []);
}

#[test]
fn an_event_that_nobody_delivered_is_wrong() {
    let found = wrongs(&[], &evidence(&[], 0));
    assert_eq!(found, [Wrong::NeverAnswered, Wrong::NeverDelivered]);
}

#[test]
fn a_second_effect_is_wrong() {
    let lines = [line(0, 1, 3, Answer::Processed)];
    assert_eq!(wrongs(&lines, &evidence(&[0, 0], 1)), [Wrong::AppliedTwice]);
}

#[test]
fn two_claims_are_wrong() {
    let lines = [line(0, 1, 3, Answer::Processed)];
    assert_eq!(wrongs(&lines, &evidence(&[0], 2)), [Wrong::ClaimedTwice]);
}

#[test]
fn a_200_without_effect_is_wrong() {
    let lines = [line(0, 1, 3, Answer::Processed)];
    let found = wrongs(&lines, &evidence(&[], 1));
    let expected = [
        Wrong::Lost,
        Wrong::ClaimWithoutEffect,
        Wrong::ProcessedElsewhere,
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_200_without_claim_is_wrong() {
    let lines = [line(0, 1, 3, Answer::Processed)];
    let found = wrongs(&lines, &evidence(&[0], 0));
    let expected = [Wrong::EffectWithoutClaim, Wrong::AnsweredWithoutClaim];
    assert_eq!(found, expected);
}

#[test]
fn two_answers_processed_are_wrong() {
    let lines = [
        line(0, 1, 5, Answer::Processed),
        line(1, 2, 6, Answer::Processed),
    ];
    let found = wrongs(&lines, &evidence(&[0, 1], 1));
    assert_eq!(found, [Wrong::AppliedTwice, Wrong::ProcessedTwice]);
}

#[test]
fn an_effect_of_a_failed_delivery_is_wrong() {
    for answer in [
        Answer::PlantedError,
        Answer::Panicked,
        Answer::DroppedInClaim,
        Answer::DroppedInApply,
        Answer::InFlight,
        Answer::Conflict,
    ] {
        let lines = [line(0, 1, 3, answer), line(1, 4, 6, Answer::Processed)];
        let found = wrongs(&lines, &evidence(&[0], 1));
        assert_eq!(found, [Wrong::ProcessedElsewhere, Wrong::FailedWithEffect]);
    }
}

#[test]
fn a_duplicate_before_any_commit_is_wrong() {
    let lines = [
        line(0, 1, 2, Answer::Duplicate),
        line(1, 0, 9, Answer::PlantedError),
        line(2, 3, 6, Answer::DroppedInCommit),
    ];
    assert_eq!(
        wrongs(&lines, &evidence(&[2], 1)),
        [Wrong::AnsweredTooEarly]
    );
}

#[test]
fn processing_after_a_200_is_wrong() {
    let lines = [
        line(0, 1, 3, Answer::DroppedInCommit),
        line(1, 4, 5, Answer::Duplicate),
        line(2, 6, 8, Answer::Processed),
    ];
    let found = wrongs(&lines, &evidence(&[2], 1));
    assert_eq!(found, [Wrong::ProcessedAfterAnswer]);
}

#[test]
fn an_event_without_a_200_is_wrong() {
    let lines = [line(0, 1, 3, Answer::DroppedInCommit)];
    assert_eq!(wrongs(&lines, &evidence(&[0], 1)), [Wrong::NeverAnswered]);
}

#[test]
fn a_claim_that_nobody_delivered_is_refused() {
    let claims = [("stripe".to_owned(), "evt_0".to_owned())];
    assert!(Evidence::of([], claims).is_err());
}
