//! `untorn report`: any report again, from the events of a run.

use std::io::Write;

use anyhow::Result;
use untorn_report::{Fold, TableOptions, read_events, story, table, write_html, write_junit};
use untorn_runner::{error_text, find_run};
use untorn_spec::Exit;

use crate::cli::{ReportArgs, ReportFormat};
use crate::session::{Usage, certificate_json};

/// Prints a report.
///
/// # Errors
/// When there is no such run, or its events cannot be read.
pub fn report(args: &ReportArgs, out: &mut impl Write) -> Result<Exit> {
    let folder = find_run(&args.runs, &args.run).map_err(|error| Usage(format!("{error:#}")))?;
    let mut fold = Fold::new();
    let events = read_events(&folder.join("events.jsonl"));
    for event in events.map_err(|error| Usage(error_text(&error.into())))? {
        fold.add(&event);
    }
    let certificate = fold.certificate();
    match args.format {
        ReportFormat::Table => {
            writeln!(out, "{}", table(&certificate, TableOptions::default()))?;
        }
        ReportFormat::Stories => {
            for violation in fold.violations() {
                writeln!(out, "{}", story(violation))?;
            }
        }
        ReportFormat::Json => out.write_all(&certificate_json(&certificate)?)?,
        ReportFormat::Junit => write_junit(out, &certificate, fold.violations())?,
        ReportFormat::Html => write_html(out, &certificate, fold.violations())?,
    }
    Ok(Exit::Success)
}
