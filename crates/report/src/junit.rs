//! `junit.xml`, for CI systems.

use std::io::Write;
use std::time::Duration;

use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestSuite};
use untorn_spec::{Certificate, FilesystemEntry, ScenarioEntry, Verdict, ViolationRecord};

use crate::judge::{Judgement, judge_control, judge_scenario};
use crate::story::story;
use crate::words::{caught, explored, outcomes, share, states};

/// Why `JUnit` XML could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the JUnit report")]
pub struct JunitError(#[from] quick_junit::SerializeError);

/// Writes a certificate as `JUnit` XML: a test suite per profile, a test case per case.
///
/// Some test case fails whenever the verdict is not `holds`. What could not be tested is an error,
/// not a skipped test, since CI systems take skipped tests for passes.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write_junit(
    out: impl Write,
    certificate: &Certificate,
    violations: &[ViolationRecord],
) -> Result<(), JunitError> {
    let mut report = Report::new(format!("untorn {}", certificate.suite));
    report.set_time(time(certificate.seconds));
    for filesystem in &certificate.filesystems {
        report.add_test_suite(suite(filesystem, violations));
    }
    let explained = certificate
        .filesystems
        .iter()
        .map(|filesystem| filesystem.verdict)
        .fold(Verdict::Holds, Verdict::and);
    if certificate.verdict > explained {
        let mut suite = TestSuite::new("run");
        let judgement = Judgement::new(certificate.verdict, "the run did not come to its end");
        suite.add_test_case(TestCase::new("run", status(&judgement, "")));
        report.add_test_suite(suite);
    }
    Ok(report.serialize(out)?)
}

fn suite(filesystem: &FilesystemEntry, violations: &[ViolationRecord]) -> TestSuite {
    let mut suite = TestSuite::new(filesystem.profile.as_str());
    suite.add_property(Property::new("mkfs", filesystem.mkfs.join(" ")));
    suite.add_property(Property::new(
        "mount_options",
        filesystem.mount_options.as_str(),
    ));
    let mut explained = Verdict::Holds;
    let mut add = |entry: &ScenarioEntry, judgement: &Judgement| {
        explained = explained.and(judgement.verdict);
        suite.add_test_case(case(filesystem, entry, judgement, violations));
    };
    for entry in &filesystem.scenarios {
        add(entry, &judge_scenario(entry));
    }
    for entry in &filesystem.controls {
        add(entry, &judge_control(entry));
    }
    if filesystem.verdict > explained {
        let reason = filesystem
            .reason
            .as_deref()
            .unwrap_or("no reason was given");
        let judgement = Judgement::new(filesystem.verdict, reason);
        suite.add_test_case(TestCase::new("profile", status(&judgement, "")));
    }
    suite
}

fn case(
    filesystem: &FilesystemEntry,
    entry: &ScenarioEntry,
    judgement: &Judgement,
    violations: &[ViolationRecord],
) -> TestCase {
    let stories: Vec<String> = violations
        .iter()
        .filter(|record| {
            record.case.profile == filesystem.profile
                && record.case.scenario == entry.name
                && record.case.writer == entry.writer
        })
        .map(story)
        .collect();
    let stories = stories.join("\n");
    let mut case = TestCase::new(entry.name.as_str(), status(judgement, &stories));
    case.set_classname(format!("{}.{}", filesystem.profile, entry.writer));
    case.set_time(time(entry.seconds));
    case.add_property(Property::new("explored", explored(entry)));
    case.add_property(Property::new("coverage", share(entry.coverage)));
    case.add_property(Property::new(
        "crash_states",
        states(entry.crash_states_log2),
    ));
    case.add_property(Property::new("recoveries", entry.recoveries.to_string()));
    case.add_property(Property::new("outcomes", outcomes(&entry.outcomes)));
    if entry.caught.is_some() {
        case.add_property(Property::new("caught_by", caught(entry)));
    }
    if judgement.verdict == Verdict::Holds && !stories.is_empty() {
        case.set_system_out(stories);
    }
    case
}

fn status(judgement: &Judgement, stories: &str) -> TestCaseStatus {
    let kind = match judgement.verdict {
        Verdict::Holds => return TestCaseStatus::success(),
        Verdict::Violated | Verdict::HarnessBroken => NonSuccessKind::Failure,
        Verdict::Unsupported | Verdict::Inconclusive => NonSuccessKind::Error,
    };
    let mut status = TestCaseStatus::non_success(kind);
    status.set_type(judgement.verdict.name());
    status.set_message(
        judgement
            .reason
            .as_deref()
            .unwrap_or("a crash state breaks the promise"),
    );
    status.set_description(stories);
    status
}

/// Seconds that are no time at all, such as a negative number, count as none.
fn time(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}
