//! `junit.xml` and `report.html`.

mod common;

use common::{certificate, control, events, fold, result, violation};
use untorn_report::{write_html, write_junit};
use untorn_spec::{CaseResult, Certificate, Expected, Verdict, ViolationKind, ViolationRecord};

fn junit(certificate: &Certificate, violations: &[ViolationRecord]) -> String {
    let mut out = Vec::new();
    write_junit(&mut out, certificate, violations).expect("a vector takes everything");
    String::from_utf8(out).expect("XML is text")
}

fn html(certificate: &Certificate, violations: &[ViolationRecord]) -> String {
    let mut out = Vec::new();
    write_html(&mut out, certificate, violations).expect("a vector takes everything");
    String::from_utf8(out).expect("HTML is text")
}

/// A violated scenario, a control that was caught and one that was not.
fn violated() -> (Certificate, Vec<ViolationRecord>) {
    let results = vec![
        CaseResult {
            violations: vec![violation("ext4", "two-files", ViolationKind::Mixed)],
            ..result("ext4", "two-files", Expected::Holds, Verdict::Violated)
        },
        control(
            "ext4",
            "control-exchange-without-fsync",
            true,
            &[ViolationKind::Empty],
        ),
        control("ext4", "control-blind", true, &[]),
    ];
    let fold = fold(&events("ext4", Expected::Holds, results));
    (fold.certificate(), fold.violations().to_vec())
}

#[test]
fn junit_of_a_pass() {
    let results = vec![result("ext4", "two-files", Expected::Holds, Verdict::Holds)];
    let expected = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="untorn quick" tests="1" skipped="0" failures="0" errors="0" time="12.340">
    <testsuite name="ext4" tests="1" skipped="0" errors="0" failures="0">
        <properties>
            <property name="mkfs" value="mkfs.ext4 -q"/>
            <property name="mount_options" value=""/>
        </properties>
        <testcase name="two-files" classname="ext4.atomicdir" time="1.250">
            <properties>
                <property name="explored" value="exhaustive"/>
                <property name="coverage" value="1.0000"/>
                <property name="crash_states" value="2^12.3"/>
                <property name="recoveries" value="209"/>
                <property name="outcomes" value="old 89, new 120"/>
            </properties>
        </testcase>
    </testsuite>
</testsuites>
"#;
    assert_eq!(
        junit(&certificate("ext4", Expected::Holds, results), &[]),
        expected
    );
}

#[test]
fn junit_of_violations_tells_their_stories() {
    let (certificate, violations) = violated();
    let text = junit(&certificate, &violations);
    assert!(
        text.contains(r#"tests="3" skipped="0" failures="2" errors="0""#),
        "{text}"
    );
    assert!(
        text.contains(r#"<failure message="a crash state breaks the promise" type="violated">"#)
    );
    assert!(text.contains("violation: mixed on ext4\n"));
    assert!(
        text.contains(r#"<failure message="control-blind was not caught" type="harness-broken""#)
    );
    assert!(
        text.contains("<system-out>violation: empty on ext4"),
        "{text}"
    );
}

#[test]
fn junit_of_what_could_not_be_tested_is_an_error() {
    let unsupported = untorn_spec::RunEvent::ProfileUnsupported {
        profile: "xfs".to_owned(),
        reason: "mkfs.xfs is missing".to_owned(),
    };
    let text = junit(
        &fold(&[common::run_started(), unsupported]).certificate(),
        &[],
    );
    assert!(
        text.contains(r#"<error message="mkfs.xfs is missing" type="unsupported""#),
        "{text}"
    );
    assert!(!text.contains("<skipped"));
}

#[test]
fn the_page_needs_nothing_else_and_tells_the_stories() {
    let (certificate, violations) = violated();
    let page = html(&certificate, &violations);
    for outside in [
        "http:", "https:", "src=", "<link", "<script", "@import", "url(",
    ] {
        assert!(!page.contains(outside), "{outside}");
    }
    for inside in [
        "<!DOCTYPE html>",
        "harness-broken",
        "6.18.5 x86_64",
        "prefers-color-scheme: dark",
        r#"<meta name="viewport""#,
        "<details open><summary>two-files: mixed</summary>",
        "<details><summary>control-exchange-without-fsync: empty</summary>",
        "NOT CAUGHT",
        "2<sup>12.3</sup>",
        "<code>untorn replay ext4/two-files/neighbor-commit@9/e3/1042=1,1050=0</code>",
    ] {
        assert!(page.contains(inside), "{inside}\n{page}");
    }
}

#[test]
fn the_page_escapes_what_it_is_given() {
    let mut record = violation("ext4", "two-files", ViolationKind::Corrupt);
    record.seen = vec!["<script>alert(1)</script> & more".to_owned()];
    let mut case = result("ext4", "two-files", Expected::Holds, Verdict::Violated);
    case.case.writer = "sh -c 'cp <a> \"b\"'".to_owned();
    record.case = case.case.clone();
    case.violations = vec![record.clone()];
    let page = html(&certificate("ext4", Expected::Holds, vec![case]), &[record]);
    assert!(
        !page.contains("<script>") && !page.contains("<a>"),
        "{page}"
    );
    assert!(page.contains("&#60;script&#62;alert(1)"), "{page}");
}
