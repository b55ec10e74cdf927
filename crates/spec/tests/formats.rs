//! What is written is read back the same: tokens, events, certificates; and exit codes are fixed.

use std::collections::BTreeMap;

use proptest::prelude::*;
use untorn_spec::{
    CaseId, CaseResult, Certificate, Disturbance, Exit, Expected, FilesystemEntry, Format, Kernel,
    ProfileInfo, RecordingSummary, ReplayToken, RunEvent, RunInfo, ScenarioEntry, Tool, Verdict,
    ViolationEntry, ViolationKind, ViolationRecord,
};

fn case() -> CaseId {
    CaseId {
        profile: "ext4".to_owned(),
        scenario: "two-files".to_owned(),
        writer: "atomicdir".to_owned(),
    }
}

fn violation() -> ViolationRecord {
    ViolationRecord {
        case: case(),
        kind: ViolationKind::LostAcknowledged,
        token: "ext4/two-files/neighbor-commit@7/e3/1042=1".to_owned(),
        disturbance: Disturbance::NeighborCommit(7),
        disturbance_text: "neighbour commit after renameat2#1".to_owned(),
        epoch: 3,
        crash_states_log2: 5.25,
        after_syscall: Some("renameat2#1".to_owned()),
        during_syscall: None,
        acknowledged: true,
        allowed: vec!["new".to_owned()],
        seen: vec!["tls.key: old".to_owned()],
        lost: vec!["block 1042".to_owned()],
        never_written: Vec::new(),
        tree_digest: "00ff".to_owned(),
        bundle: "violations/1".to_owned(),
        replay: "untorn replay x".to_owned(),
    }
}

fn events() -> Vec<RunEvent> {
    let result = CaseResult {
        case: case(),
        kind: "power-cut".to_owned(),
        expected: Expected::Holds,
        control: false,
        must_be_caught: false,
        control_kinds: vec![ViolationKind::Empty],
        verdict: Verdict::Violated,
        reason: None,
        exhaustive: true,
        coverage: 1.0,
        departures_completed: None,
        recordings: 1,
        spaces: 2,
        spaces_known: 0,
        crash_states_log2: 12.5,
        recoveries: 34,
        repeated: 1,
        usable_probes: 1,
        recovery_seconds: 1.5,
        seconds: 0.125,
        outcomes: BTreeMap::from([("old".to_owned(), 33), ("lost-acknowledged".to_owned(), 1)]),
        violations: vec![violation()],
    };
    vec![
        RunEvent::RunStarted(RunInfo {
            run_id: "r".to_owned(),
            tool_version: "0.1.0".to_owned(),
            tool_commit: "unknown".to_owned(),
            kernel_release: "6.18".to_owned(),
            kernel_version: "#1".to_owned(),
            machine: "x86_64".to_owned(),
            guest: None,
            seed: u64::MAX,
            suite: "quick".to_owned(),
            workers: 2,
        }),
        RunEvent::ProfileStarted(ProfileInfo {
            profile: "ext4".to_owned(),
            mkfs: vec!["mkfs.ext4".to_owned()],
            mount_options: String::new(),
            unit: 4096,
            expected: Expected::Holds,
        }),
        RunEvent::ProfileUnsupported {
            profile: "xfs".to_owned(),
            reason: "no mkfs.xfs".to_owned(),
        },
        RunEvent::CaseStarted {
            case: case(),
            recordings: 3,
        },
        RunEvent::RecordingExplored(RecordingSummary {
            case: case(),
            disturbance: Disturbance::Undisturbed,
            syscalls: 12,
            writes: 100,
            flushes: 4,
            spaces: 5,
            recoveries: 34,
        }),
        RunEvent::ViolationFound(Box::new(violation())),
        RunEvent::CaseFinished(result),
        RunEvent::RunFinished { seconds: 1.5 },
    ]
}

#[test]
fn each_event_is_one_line_and_comes_back() {
    for event in events() {
        let line = serde_json::to_string(&event).unwrap();
        assert!(!line.contains('\n'));
        assert_eq!(
            serde_json::from_str::<RunEvent>(&line).unwrap(),
            event,
            "{line}"
        );
    }
}

#[test]
fn events_are_told_apart_by_a_name() {
    let names: Vec<String> = events()
        .iter()
        .map(|event| {
            serde_json::to_value(event).unwrap()["event"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(
        names,
        [
            "run-started",
            "profile-started",
            "profile-unsupported",
            "case-started",
            "recording-explored",
            "violation-found",
            "case-finished",
            "run-finished",
        ]
    );
}

#[test]
fn a_certificate_comes_back_and_has_the_promised_fields() {
    let entry = ScenarioEntry {
        name: "two-files".to_owned(),
        writer: "atomicdir".to_owned(),
        kind: "power-cut".to_owned(),
        expected: Expected::Holds,
        verdict: Verdict::Violated,
        reason: None,
        caught: None,
        exhaustive: false,
        coverage: 0.5,
        departures_completed: Some(2),
        crash_states_log2: 12.5,
        recordings: 1,
        recoveries: 3,
        seconds: 0.5,
        outcomes: BTreeMap::from([("old".to_owned(), 3)]),
        violations: vec![ViolationEntry {
            kind: ViolationKind::Mixed,
            token: "t".to_owned(),
            after_syscall: None,
            lost: Vec::new(),
            bundle: "violations/1".to_owned(),
        }],
    };
    let certificate = Certificate {
        format: Format::default(),
        verdict: Verdict::HarnessBroken,
        kernel: Kernel {
            release: "6.18".to_owned(),
            version: "#1".to_owned(),
            machine: "x86_64".to_owned(),
            guest: None,
        },
        tool: Tool {
            version: "0.1.0".to_owned(),
            commit: "unknown".to_owned(),
        },
        seed: 7,
        suite: "quick".to_owned(),
        run_id: "r".to_owned(),
        seconds: 0.5,
        filesystems: vec![FilesystemEntry {
            profile: "ext4".to_owned(),
            mkfs: Vec::new(),
            mount_options: String::new(),
            unit: 4096,
            expected: Expected::Holds,
            verdict: Verdict::HarnessBroken,
            reason: Some("why".to_owned()),
            scenarios: vec![entry.clone()],
            controls: vec![ScenarioEntry {
                caught: Some(false),
                ..entry
            }],
        }],
    };
    let value = serde_json::to_value(&certificate).unwrap();
    assert_eq!(value["format"]["name"], "untorn-certificate");
    assert_eq!(value["format"]["major"], 1);
    assert_eq!(value["verdict"], "harness-broken");
    let filesystem = &value["filesystems"][0];
    for field in [
        "profile",
        "mkfs",
        "mount_options",
        "verdict",
        "scenarios",
        "controls",
    ] {
        assert!(!filesystem[field].is_null(), "{field}");
    }
    let scenario = &filesystem["scenarios"][0];
    for field in [
        "name",
        "writer",
        "kind",
        "expected",
        "verdict",
        "exhaustive",
        "coverage",
        "crash_states_log2",
        "recoveries",
        "seconds",
        "outcomes",
        "violations",
    ] {
        assert!(!scenario[field].is_null(), "{field}");
    }
    assert_eq!(filesystem["controls"][0]["caught"], false);
    assert_eq!(
        serde_json::from_value::<Certificate>(value).unwrap(),
        certificate
    );
}

#[test]
fn exit_codes_are_the_documented_ones() {
    for (verdict, code) in [
        (Verdict::Holds, 0),
        (Verdict::Violated, 1),
        (Verdict::Unsupported, 3),
        (Verdict::HarnessBroken, 4),
        (Verdict::Inconclusive, 5),
    ] {
        assert_eq!(Exit::from(verdict).code(), code, "{verdict}");
    }
    assert_eq!(Exit::Usage.code(), 2);
    assert_eq!(Exit::Internal.code(), 70);
}

#[test]
fn kinds_are_named_alike_everywhere() {
    for kind in ViolationKind::ALL {
        assert_eq!(kind.name().parse(), Ok(kind));
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
    }
}

#[test]
fn what_is_no_token_is_refused() {
    for text in [
        "",
        "ext4",
        "a/b/undisturbed/3/x",
        "a/b/never/e3/x",
        "/b/undisturbed/e3/x",
        "a/b/undisturbed/e3/x/y",
    ] {
        assert!(text.parse::<ReplayToken>().is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn tokens_round_trip(
        profile in "[a-z0-9-]{1,20}",
        scenario in "[a-z0-9-]{1,30}",
        boundary in proptest::option::of(any::<u32>()),
        epoch in any::<u32>(),
        path in "([0-9]{1,6}=[0-9]{1,2}(,[0-9]{1,6}=[0-9]{1,2}){0,5})?",
    ) {
        let recording = boundary.map_or(Disturbance::Undisturbed, Disturbance::NeighborCommit);
        let token = ReplayToken { profile, scenario, recording, epoch, path };
        let text = token.to_string();
        prop_assert_eq!(text.parse::<ReplayToken>(), Ok(token));
        // The token is pasted into a shell as it is.
        prop_assert!(text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-/@=,".contains(&b)));
    }
}
