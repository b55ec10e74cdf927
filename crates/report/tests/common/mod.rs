//! A small run to report on, built from few words.
#![allow(dead_code, reason = "each test file uses a part of it")]

use untorn_report::Fold;
use untorn_spec::{
    CaseId, CaseResult, Certificate, Disturbance, Expected, ProfileInfo, RunEvent, RunInfo,
    Verdict, ViolationKind, ViolationRecord,
};

pub(crate) fn run_started() -> RunEvent {
    RunEvent::RunStarted(RunInfo {
        run_id: "20260801-1200-ab".to_owned(),
        tool_version: "0.1.0".to_owned(),
        tool_commit: "abc1234".to_owned(),
        kernel_release: "6.18.5".to_owned(),
        kernel_version: "#1 SMP".to_owned(),
        machine: "x86_64".to_owned(),
        guest: None,
        seed: 7,
        suite: "quick".to_owned(),
        workers: 2,
    })
}

pub(crate) fn profile_started(profile: &str, expected: Expected) -> RunEvent {
    RunEvent::ProfileStarted(ProfileInfo {
        profile: profile.to_owned(),
        mkfs: vec!["mkfs.ext4".to_owned(), "-q".to_owned()],
        mount_options: String::new(),
        unit: 4096,
        expected,
    })
}

pub(crate) fn case(profile: &str, scenario: &str) -> CaseId {
    let built_in = untorn_spec::scenario(scenario).map(|known| known.writer.as_str());
    let writer = scenario.strip_prefix("control-").unwrap_or("atomicdir");
    let writer = built_in.unwrap_or(writer);
    CaseId {
        profile: profile.to_owned(),
        scenario: scenario.to_owned(),
        writer: writer.to_owned(),
    }
}

/// A case of a correct writer.
pub(crate) fn result(
    profile: &str,
    scenario: &str,
    expected: Expected,
    verdict: Verdict,
) -> CaseResult {
    CaseResult {
        case: case(profile, scenario),
        kind: "power-cut".to_owned(),
        expected,
        control: false,
        must_be_caught: false,
        control_kinds: Vec::new(),
        verdict,
        reason: None,
        exhaustive: true,
        coverage: 1.0,
        departures_completed: None,
        recordings: 14,
        spaces: 20,
        spaces_known: 5,
        crash_states_log2: 12.34,
        recoveries: 209,
        repeated: 10,
        usable_probes: 5,
        recovery_seconds: 1.5,
        seconds: 1.25,
        outcomes: [("old".to_owned(), 89), ("new".to_owned(), 120)].into(),
        violations: Vec::new(),
    }
}

/// A control in which these kinds were found.
pub(crate) fn control(
    profile: &str,
    scenario: &str,
    due: bool,
    found: &[ViolationKind],
) -> CaseResult {
    let verdict = if found.is_empty() {
        Verdict::Holds
    } else {
        Verdict::Violated
    };
    let found = found.iter();
    CaseResult {
        control: true,
        must_be_caught: due,
        control_kinds: vec![ViolationKind::Empty],
        violations: found
            .map(|kind| violation(profile, scenario, *kind))
            .collect(),
        ..result(profile, scenario, Expected::Violated, verdict)
    }
}

pub(crate) fn violation(profile: &str, scenario: &str, kind: ViolationKind) -> ViolationRecord {
    let token = format!("{profile}/{scenario}/neighbor-commit@9/e3/1042=1,1050=0");
    ViolationRecord {
        case: case(profile, scenario),
        kind,
        disturbance: Disturbance::NeighborCommit(9),
        disturbance_text: "neighbour commit after renameat2#1".to_owned(),
        epoch: 3,
        crash_states_log2: 5.25,
        after_syscall: Some("renameat2#1 .live.new <-> live".to_owned()),
        during_syscall: Some("unlinkat#1 .live.new/tls.crt".to_owned()),
        acknowledged: false,
        allowed: vec!["old".to_owned(), "new".to_owned()],
        seen: vec![
            "tls.crt: 0 bytes, should be 5000 or 6000".to_owned(),
            "tls.key: 0 bytes, should be 1700 or 1704".to_owned(),
        ],
        lost: vec!["1 of 3 units of the journal".to_owned()],
        never_written: vec![
            "tls.crt: 6000 bytes".to_owned(),
            "tls.key: 1704 bytes".to_owned(),
        ],
        tree_digest: "00ff".to_owned(),
        bundle: "violations/1".to_owned(),
        replay: format!("untorn replay {token}"),
        token,
    }
}

pub(crate) fn run_finished() -> RunEvent {
    RunEvent::RunFinished { seconds: 12.34 }
}

pub(crate) fn fold(events: &[RunEvent]) -> Fold {
    let mut fold = Fold::new();
    for event in events {
        fold.add(event);
    }
    fold
}

/// Events of a run on one profile that came to its end.
pub(crate) fn events(profile: &str, expected: Expected, results: Vec<CaseResult>) -> Vec<RunEvent> {
    let mut events = vec![run_started(), profile_started(profile, expected)];
    for result in results {
        events.push(RunEvent::CaseStarted {
            case: result.case.clone(),
            recordings: result.recordings,
        });
        let found = result.violations.iter().cloned();
        events.extend(found.map(|record| RunEvent::ViolationFound(Box::new(record))));
        events.push(RunEvent::CaseFinished(result));
    }
    events.push(run_finished());
    events
}

pub(crate) fn certificate(
    profile: &str,
    expected: Expected,
    results: Vec<CaseResult>,
) -> Certificate {
    fold(&events(profile, expected, results)).certificate()
}
