//! A report can be made again from the events of a run folder.

mod common;

use std::io::Write;

use common::{control, events, fold, result};
use proptest::prelude::*;
use untorn_report::{ReadError, read_events};
use untorn_spec::{CaseResult, Expected, RunEvent, Verdict, ViolationKind};

const VERDICTS: [Verdict; 5] = [
    Verdict::Holds,
    Verdict::Unsupported,
    Verdict::Inconclusive,
    Verdict::Violated,
    Verdict::HarnessBroken,
];

prop_compose! {
    fn any_result()(
        scenario in "[a-z]{1,8}",
        verdict in proptest::sample::select(&VERDICTS[..]),
        expected in proptest::sample::select(&[Expected::Holds, Expected::Violated][..]),
        coverage in 0.0f64..=1.0,
        seconds in 0.0f64..1e6,
        log2 in 0.0f64..1e4,
        recoveries in any::<u64>(),
        exhaustive in any::<bool>(),
        is_control in any::<bool>(),
        due in any::<bool>(),
        found in proptest::sample::subsequence(&ViolationKind::ALL[..], 0..3),
        reason in proptest::option::of(".{0,20}"),
    ) -> CaseResult {
        let base = if is_control {
            control("ext4", &format!("control-{scenario}"), due, &found)
        } else {
            result("ext4", &scenario, expected, verdict)
        };
        CaseResult { coverage, seconds, crash_states_log2: log2, recoveries, exhaustive, reason, ..base }
    }
}

prop_compose! {
    fn any_events()(
        expected in proptest::sample::select(&[Expected::Holds, Expected::Violated][..]),
        results in proptest::collection::vec(any_result(), 0..5),
        kept in 0usize..30,
        unsupported in proptest::option::of(".{0,20}"),
    ) -> Vec<RunEvent> {
        let mut events = events("ext4", expected, results);
        // A run may be cut short anywhere.
        events.truncate(kept);
        events.extend(unsupported.map(|reason| RunEvent::ProfileUnsupported {
            profile: "xfs".to_owned(),
            reason,
        }));
        events
    }
}

proptest! {
    #[test]
    fn serialized_events_fold_to_the_same(events in any_events()) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        for event in &events {
            writeln!(file, "{}", serde_json::to_string(event).unwrap()).unwrap();
        }
        let read = read_events(file.path()).unwrap();
        prop_assert_eq!(&read, &events);
        prop_assert_eq!(fold(&read), fold(&events));
        prop_assert_eq!(fold(&read).certificate(), fold(&events).certificate());
    }

    #[test]
    fn the_certificate_comes_back_from_its_own_file(events in any_events()) {
        let certificate = fold(&events).certificate();
        let text = serde_json::to_string_pretty(&certificate).unwrap();
        prop_assert_eq!(serde_json::from_str::<untorn_spec::Certificate>(&text).unwrap(), certificate);
    }

    #[test]
    fn a_junit_reader_sees_a_failure_exactly_when_the_verdict_is_no_pass(events in any_events()) {
        let fold = fold(&events);
        let certificate = fold.certificate();
        let mut xml = Vec::new();
        untorn_report::write_junit(&mut xml, &certificate, fold.violations()).unwrap();
        let report = quick_junit::Report::deserialize(&*xml).unwrap();
        prop_assert_eq!(report.failures + report.errors > 0, certificate.verdict != Verdict::Holds);
    }
}

#[test]
fn a_line_cut_off_by_a_kill_is_left_out_and_a_wrong_one_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.jsonl");
    let events = [common::run_started(), common::run_finished()];
    let lines: Vec<String> = events
        .iter()
        .map(|event| serde_json::to_string(event).unwrap())
        .collect();
    std::fs::write(&path, format!("{}\n{}", lines[0], &lines[1][..9])).unwrap();
    assert_eq!(read_events(&path).unwrap(), events[..1]);
    std::fs::write(&path, format!("{}\n{{}}\n", lines[0])).unwrap();
    let error = read_events(&path).unwrap_err();
    assert!(matches!(error, ReadError::Line { line: 2, .. }), "{error}");
    assert!(
        error
            .to_string()
            .ends_with("events.jsonl:2: no event that this version knows")
    );
    let error = read_events(&folder.path().join("none")).unwrap_err();
    assert!(error.to_string().starts_with("cannot read "), "{error}");
}
