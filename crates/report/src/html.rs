//! `report.html`: one file that needs nothing else.

use std::io::{self, Write};

use askama::Template;
use untorn_spec::{
    Certificate, Expected, FilesystemEntry, ScenarioEntry, Verdict, ViolationRecord,
};

use crate::judge::{judge_control, judge_scenario};
use crate::story::story;
use crate::words::{caught, explored, outcomes, seconds, states};

/// Writes a certificate and its violations as a page. Stories of violations that nobody expected
/// stand open, those of controls are folded.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write_html(
    out: &mut impl Write,
    certificate: &Certificate,
    violations: &[ViolationRecord],
) -> io::Result<()> {
    Page::new(certificate, violations).write_into(out)
}

/// What the template shows. Texts are escaped by it.
#[derive(Template)]
#[template(path = "report.html")]
struct Page<'c> {
    certificate: &'c Certificate,
    class: &'static str,
    seconds: String,
    sections: Vec<Section<'c>>,
}

/// One profile.
struct Section<'c> {
    filesystem: &'c FilesystemEntry,
    class: &'static str,
    mkfs: String,
    expected_violated: bool,
    scenarios: Vec<Row<'c>>,
    controls: Vec<Row<'c>>,
    /// Stories of violations that nobody expected.
    unexpected: Vec<Told>,
    /// Stories of violations that had to be found.
    expected: Vec<Told>,
}

/// One case.
struct Row<'c> {
    entry: &'c ScenarioEntry,
    class: &'static str,
    /// Verdict, or how a control was caught.
    result: String,
    explored: String,
    states: String,
    seconds: String,
    outcomes: String,
}

/// One violation.
struct Told {
    title: String,
    story: String,
    replay: String,
}

impl<'c> Page<'c> {
    fn new(certificate: &'c Certificate, violations: &[ViolationRecord]) -> Self {
        let sections = certificate.filesystems.iter();
        Self {
            certificate,
            class: class(certificate.verdict),
            seconds: seconds(certificate.seconds),
            sections: sections
                .map(|filesystem| Section::new(filesystem, violations))
                .collect(),
        }
    }
}

impl<'c> Section<'c> {
    fn new(filesystem: &'c FilesystemEntry, violations: &[ViolationRecord]) -> Self {
        let here = violations
            .iter()
            .filter(|record| record.case.profile == filesystem.profile);
        let (unexpected, expected): (Vec<&ViolationRecord>, Vec<&ViolationRecord>) =
            here.partition(|record| is_unexpected(filesystem, record));
        let scenarios = filesystem.scenarios.iter();
        let controls = filesystem.controls.iter();
        Self {
            filesystem,
            class: class(filesystem.verdict),
            mkfs: filesystem.mkfs.join(" "),
            expected_violated: filesystem.expected == Expected::Violated,
            scenarios: scenarios
                .map(|entry| {
                    let result = entry.verdict.name().to_owned();
                    Row::new(entry, judge_scenario(entry).verdict, result)
                })
                .collect(),
            controls: controls
                .map(|entry| Row::new(entry, judge_control(entry).verdict, caught(entry)))
                .collect(),
            unexpected: unexpected.into_iter().map(Told::new).collect(),
            expected: expected.into_iter().map(Told::new).collect(),
        }
    }
}

/// Controls, and correct writers where nothing is promised, are expected to be violated. A case
/// that has no entry was stopped, so nothing is known to be expected of it.
fn is_unexpected(filesystem: &FilesystemEntry, record: &ViolationRecord) -> bool {
    let is_case = |entry: &ScenarioEntry| {
        entry.name == record.case.scenario && entry.writer == record.case.writer
    };
    let mut expected = filesystem
        .scenarios
        .iter()
        .filter(|entry| entry.expected == Expected::Violated)
        .chain(&filesystem.controls);
    !expected.any(is_case)
}

impl<'c> Row<'c> {
    fn new(entry: &'c ScenarioEntry, meaning: Verdict, result: String) -> Self {
        Self {
            entry,
            class: class(meaning),
            result,
            explored: explored(entry),
            states: states(entry.crash_states_log2).split_off("2^".len()),
            seconds: seconds(entry.seconds),
            outcomes: outcomes(&entry.outcomes),
        }
    }
}

impl Told {
    fn new(record: &ViolationRecord) -> Self {
        let text = story(record);
        // The first line is the title, the last one the command.
        let told = text.split_once('\n').map_or("", |(_, rest)| rest);
        let told = told.strip_suffix(&format!("{}\n", record.replay));
        Self {
            title: format!("{}: {}", record.case.scenario, record.kind),
            story: told.unwrap_or(&text).trim_end().to_owned(),
            replay: record.replay.clone(),
        }
    }
}

/// The name of a verdict's colour in the page's style.
fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "good",
        Verdict::Violated | Verdict::HarnessBroken => "bad",
        Verdict::Unsupported | Verdict::Inconclusive => "unsure",
    }
}
