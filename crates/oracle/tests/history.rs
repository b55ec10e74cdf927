//! Which generations a history allows.

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use untorn_oracle::HistoryEvent::{Acknowledged, Started};
use untorn_oracle::{History, HistoryError, HistoryEvent};

#[track_caller]
fn check(events: &[HistoryEvent], allowed: &[usize]) {
    assert_eq!(
        History::from_events(events.iter().copied())
            .expect("possible events")
            .allowed(),
        allowed
    );
}

#[test]
fn one_writer_after_the_other() {
    check(&[], &[0]);
    check(&[Started(1)], &[0, 1]);
    check(&[Started(1), Acknowledged(1)], &[1]);
    check(&[Started(1), Acknowledged(1), Started(2)], &[1, 2]);
    check(
        &[Started(1), Acknowledged(1), Started(2), Acknowledged(2)],
        &[2],
    );
}

#[test]
fn two_writers_at_once() {
    check(&[Started(1), Started(2), Acknowledged(2)], &[1, 2]);
    check(
        &[Started(1), Started(2), Acknowledged(2), Acknowledged(1)],
        &[1, 2],
    );
    check(
        &[
            Started(1),
            Started(2),
            Acknowledged(1),
            Started(3),
            Acknowledged(3),
        ],
        &[2, 3],
    );
}

#[test]
fn events_that_cannot_follow_are_refused_and_change_nothing() {
    let mut history = History::new();
    assert_eq!(
        history.record(Started(0)),
        Err(HistoryError::StartOrder {
            generation: 0,
            latest: 0
        })
    );
    assert_eq!(
        history.record(Acknowledged(0)),
        Err(HistoryError::AcknowledgedTwice(0))
    );
    assert_eq!(
        history.record(Acknowledged(1)),
        Err(HistoryError::NeverStarted(1))
    );
    history.record(Started(2)).unwrap();
    history.record(Acknowledged(2)).unwrap();
    assert_eq!(
        history.record(Acknowledged(2)),
        Err(HistoryError::AcknowledgedTwice(2))
    );
    assert_eq!(
        history.record(Started(1)),
        Err(HistoryError::StartOrder {
            generation: 1,
            latest: 2
        })
    );
    assert_eq!(history.events(), [Started(2), Acknowledged(2)]);
}

/// The sentence of the crash model, spelled out over the events: a generation is allowed when it
/// was started, unless some acknowledged one started after it had been acknowledged.
fn allowed_by_the_sentence(events: &[HistoryEvent]) -> Vec<usize> {
    let mut all = vec![Started(0), Acknowledged(0)];
    all.extend(events);
    let at = |event| all.iter().position(|&other| other == event);
    let generations = || 0..=events.len();
    let superseded = |g| {
        generations().any(
            |h| match (at(Acknowledged(g)), at(Started(h)), at(Acknowledged(h))) {
                (Some(g_acknowledged), Some(h_started), Some(_)) => h_started > g_acknowledged,
                _ => false,
            },
        )
    };
    generations()
        .filter(|&g| at(Started(g)).is_some() && !superseded(g))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_rule_is_the_sentence(steps in prop::collection::vec(0_usize..6, 0..12)) {
        let mut history = History::new();
        let mut started = 0;
        for step in steps {
            // Steps that cannot follow are refused, which leaves some history in any case.
            let event = if step == 0 { Started(started + 1) } else { Acknowledged(step) };
            if history.record(event).is_ok() && step == 0 {
                started += 1;
            }
        }
        let allowed = history.allowed();
        prop_assert!(!allowed.is_empty());
        prop_assert_eq!(allowed, allowed_by_the_sentence(history.events()));
    }
}
