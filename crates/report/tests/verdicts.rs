//! The rule of [`untorn_report::Fold::verdict`], case by case.

mod common;

use common::{
    case, certificate, control, events, fold, profile_started, result, run_finished, run_started,
};
use untorn_spec::{CaseResult, Expected, RunEvent, Verdict, ViolationKind};

use Expected::{Holds as Promises, Violated as PromisesNothing};
use Verdict::{HarnessBroken, Holds, Inconclusive, Unsupported, Violated};

fn with_verdict(result: CaseResult, verdict: Verdict) -> CaseResult {
    CaseResult {
        verdict,
        reason: Some("why".to_owned()),
        ..result
    }
}

/// The verdict of a profile whose correct writers come to these verdicts.
fn of_scenarios(expected: Expected, verdicts: &[Verdict]) -> Verdict {
    let results = verdicts.iter().map(|verdict| {
        let result = result("ext4", "two-files", expected, *verdict);
        with_verdict(result, *verdict)
    });
    certificate("ext4", expected, results.collect()).verdict
}

#[test]
fn correct_writers() {
    for (expected, verdicts, whole) in [
        (Promises, &[Holds][..], Holds),
        (Promises, &[Holds, Violated], Violated),
        (Promises, &[Violated, Inconclusive], Violated),
        (Promises, &[Holds, Inconclusive], Inconclusive),
        (Promises, &[Unsupported, Holds], Unsupported),
        (Promises, &[HarnessBroken, Violated], HarnessBroken),
        (PromisesNothing, &[Violated], Holds),
        (PromisesNothing, &[Holds, Violated], Holds),
        (PromisesNothing, &[Holds], HarnessBroken),
        (PromisesNothing, &[Holds, Holds], HarnessBroken),
        (PromisesNothing, &[Holds, Inconclusive], Inconclusive),
        (PromisesNothing, &[Violated, Inconclusive], Inconclusive),
        (PromisesNothing, &[Unsupported], Unsupported),
    ] {
        assert_eq!(
            of_scenarios(expected, verdicts),
            whole,
            "{expected:?} {verdicts:?}"
        );
    }
}

#[test]
fn controls() {
    use ViolationKind::{Empty, Mixed};
    // Due, kinds found where `empty` is wanted, verdict of the case if another, verdict of all.
    for (due, found, verdict, whole) in [
        (true, &[Empty][..], None, Holds),
        (true, &[Mixed, Empty], None, Holds),
        (true, &[], None, HarnessBroken),
        (true, &[Mixed], None, HarnessBroken),
        (true, &[], Some(Inconclusive), HarnessBroken),
        (true, &[Empty], Some(Inconclusive), Holds),
        (true, &[], Some(Unsupported), Unsupported),
        (false, &[], None, Holds),
        (false, &[Mixed], None, Holds),
        (false, &[], Some(Unsupported), Holds),
        (false, &[], Some(HarnessBroken), HarnessBroken),
    ] {
        let mut control = control("ext4", "control-x", due, found);
        if let Some(verdict) = verdict {
            control = with_verdict(control, verdict);
        }
        let certificate = certificate("ext4", Promises, vec![control]);
        assert_eq!(certificate.verdict, whole, "{due} {found:?} {verdict:?}");
    }
}

#[test]
fn an_uncaught_control_outweighs_everything() {
    let results = vec![
        result("ext4", "two-files", Promises, Violated),
        control("ext4", "control-x", true, &[]),
    ];
    let certificate = certificate("ext4", Promises, results);
    assert_eq!(certificate.verdict, HarnessBroken);
    let filesystem = &certificate.filesystems[0];
    assert_eq!(
        filesystem.reason.as_deref(),
        Some("control-x was not caught")
    );
    assert_eq!(filesystem.controls[0].caught, Some(false));
}

#[test]
fn the_whole_is_the_worst_of_its_profiles() {
    let mut events = events(
        "ext4",
        Promises,
        vec![result("ext4", "two-files", Promises, Holds)],
    );
    events.insert(
        1,
        RunEvent::ProfileUnsupported {
            profile: "xfs".to_owned(),
            reason: "mkfs.xfs is missing: apt-get install xfsprogs".to_owned(),
        },
    );
    let certificate = fold(&events).certificate();
    assert_eq!(certificate.verdict, Unsupported);
    let (xfs, ext4) = (&certificate.filesystems[0], &certificate.filesystems[1]);
    assert_eq!((xfs.verdict, ext4.verdict), (Unsupported, Holds));
    assert_eq!(
        xfs.reason.as_deref(),
        Some("mkfs.xfs is missing: apt-get install xfsprogs")
    );
    assert_eq!(
        xfs.unit, 4096,
        "what is not told is as the built-in profile has it"
    );
    assert_eq!(xfs.mkfs[0], "mkfs.xfs");
}

#[test]
fn nothing_tested_is_no_pass() {
    assert_eq!(fold(&[]).certificate().verdict, Inconclusive);
    assert_eq!(
        fold(&[run_started(), run_finished()]).certificate().verdict,
        Inconclusive
    );
    let certificate = certificate("ext4", Promises, Vec::new());
    assert_eq!(certificate.verdict, Inconclusive);
    assert_eq!(
        certificate.filesystems[0].reason.as_deref(),
        Some("no case was run")
    );
}

#[test]
fn a_run_that_was_cut_short_is_no_pass() {
    let mut events = events(
        "ext4",
        Promises,
        vec![result("ext4", "two-files", Promises, Holds)],
    );
    events.pop();
    assert_eq!(fold(&events).certificate().verdict, Inconclusive);
    events.push(RunEvent::CaseStarted {
        case: case("ext4", "nested"),
        recordings: 0,
    });
    events.push(run_finished());
    let certificate = fold(&events).certificate();
    assert_eq!(certificate.verdict, Inconclusive);
    assert_eq!(
        certificate.filesystems[0].reason.as_deref(),
        Some("the run ended before nested was done")
    );
}

#[test]
fn violations_are_kept_once_and_told_apart() {
    let violated = CaseResult {
        violations: vec![common::violation("ext4", "two-files", ViolationKind::Mixed)],
        ..result("ext4", "two-files", Promises, Violated)
    };
    let caught = control("ext4", "control-x", true, &[ViolationKind::Empty]);
    let events = events("ext4", Promises, vec![violated, caught]);
    let fold = fold(&events);
    assert_eq!(fold.violations().len(), 2);
    let unexpected: Vec<_> = fold
        .unexpected_violations()
        .map(|found| found.kind)
        .collect();
    assert_eq!(unexpected, [ViolationKind::Mixed]);
}

#[test]
fn the_certificate_says_what_the_events_said() {
    let events = [
        run_started(),
        profile_started("ext4", Promises),
        RunEvent::CaseFinished(result("ext4", "two-files", Promises, Holds)),
        run_finished(),
    ];
    let certificate = fold(&events).certificate();
    assert_eq!(certificate.kernel.release, "6.18.5");
    assert_eq!(certificate.tool.commit, "abc1234");
    assert_eq!((certificate.seed, certificate.suite.as_str()), (7, "quick"));
    assert!((certificate.seconds - 12.34).abs() < f64::EPSILON);
    let entry = &certificate.filesystems[0].scenarios[0];
    assert_eq!(
        (entry.name.as_str(), entry.writer.as_str()),
        ("two-files", "atomicdir")
    );
    assert_eq!(
        (entry.recordings, entry.recoveries, entry.caught),
        (14, 209, None)
    );
    assert!(entry.exhaustive);
}
