//! The table at the end of a run.

use std::fmt::Write;

use comfy_table::presets::NOTHING;
use comfy_table::{
    Cell, CellAlignment, Color, ColumnConstraint, ContentArrangement, Table, TableComponent,
};
use untorn_spec::{Certificate, Expected, FilesystemEntry, ScenarioEntry, Verdict};

use crate::judge::{judge_control, judge_scenario};
use crate::words::{caught, outcomes, seconds, share, states};

/// How the table is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableOptions {
    /// Verdicts are coloured, by terminal escape codes.
    pub color: bool,
    /// Most columns that a line takes; longer texts are wrapped.
    pub columns_max: u16,
}

impl Default for TableOptions {
    fn default() -> Self {
        Self {
            color: false,
            columns_max: 100,
        }
    }
}

/// Columns up to which names are kept on one line. Built-in ones fit; a command line may not.
const NAME_COLUMNS_MAX: u16 = 40;

/// The whole certificate as text: per profile a table of scenarios and one of controls.
pub fn table(certificate: &Certificate, options: TableOptions) -> String {
    let mut text = String::new();
    for filesystem in &certificate.filesystems {
        text.push_str(&heading(filesystem, options));
        if !filesystem.scenarios.is_empty() {
            text.push_str(&scenarios(&filesystem.scenarios, options));
        }
        if !filesystem.scenarios.is_empty() && !filesystem.controls.is_empty() {
            text.push('\n');
        }
        if !filesystem.controls.is_empty() {
            text.push_str(&controls(&filesystem.controls, options));
        }
        let entries = filesystem.scenarios.iter().chain(&filesystem.controls);
        for entry in entries {
            let said = entry
                .reason
                .as_ref()
                .map(|reason| format!("{}: {reason}", entry.name));
            if let Some(reason) = said.filter(|reason| filesystem.reason.as_ref() != Some(reason)) {
                line(&mut text, &format!("  {reason}"));
            }
        }
        text.push('\n');
    }
    let verdict = painted(certificate.verdict.name(), certificate.verdict, options);
    let Certificate { kernel, tool, .. } = certificate;
    line(
        &mut text,
        &format!(
            "verdict: {verdict} (suite {}, kernel {} {}, untorn {} {}, seed {}, {} s)",
            certificate.suite,
            kernel.release,
            kernel.machine,
            tool.version,
            tool.commit,
            certificate.seed,
            seconds(certificate.seconds)
        ),
    );
    text
}

fn heading(filesystem: &FilesystemEntry, options: TableOptions) -> String {
    let mut heading = format!(
        "{}: {}",
        filesystem.profile,
        painted(filesystem.verdict.name(), filesystem.verdict, options)
    );
    if filesystem.expected == Expected::Violated {
        heading.push_str(" (a correct writer is expected to be violated here)");
    }
    heading.push('\n');
    if let Some(reason) = &filesystem.reason {
        line(&mut heading, &format!("  {reason}"));
    }
    heading
}

fn scenarios(entries: &[ScenarioEntry], options: TableOptions) -> String {
    let header = [
        "scenario",
        "writer",
        "verdict",
        "crash states",
        "recoveries",
        "time",
        "outcomes",
    ];
    let rows = entries.iter().map(|entry| {
        vec![
            Cell::new(&entry.name),
            Cell::new(&entry.writer),
            colored(&verdict(entry), judge_scenario(entry).verdict, options),
            number(&judged(entry)),
            number(&entry.recoveries.to_string()),
            number(&format!("{} s", seconds(entry.seconds))),
            Cell::new(outcomes(&entry.outcomes)),
        ]
    });
    draw(&header, rows.collect(), options)
}

fn controls(entries: &[ScenarioEntry], options: TableOptions) -> String {
    let header = ["control", "caught by", "crash states", "recoveries", "time"];
    let rows = entries.iter().map(|entry| {
        vec![
            Cell::new(&entry.name),
            colored(&caught(entry), judge_control(entry).verdict, options),
            number(&judged_control(entry)),
            number(&entry.recoveries.to_string()),
            number(&format!("{} s", seconds(entry.seconds))),
        ]
    });
    draw(&header, rows.collect(), options)
}

/// A table without lines but one below the header, indented by two.
fn draw(headers: &[&str], rows: Vec<Vec<Cell>>, options: TableOptions) -> String {
    let mut table = Table::new();
    table
        .load_preset(NOTHING)
        .set_style(TableComponent::HeaderLines, '─')
        .set_style(TableComponent::MiddleHeaderIntersections, '─')
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(options.columns_max.saturating_sub(2))
        .set_header(headers.iter().map(|name| {
            let numeric = matches!(*name, "crash states" | "recoveries" | "time");
            if numeric {
                number(name)
            } else {
                Cell::new(name)
            }
        }))
        .add_rows(rows);
    if options.color {
        table.enforce_styling();
    } else {
        table.force_no_tty();
    }
    let is_name = |header: &str| matches!(header, "scenario" | "writer" | "control");
    let widths = headers.iter().zip(table.column_max_content_widths());
    let names: u16 = widths
        .filter(|(header, _)| is_name(header))
        .fold(0, |sum, (_, width)| sum.saturating_add(width));
    for (column, header) in table.column_iter_mut().zip(headers) {
        let is_last = Some(header) == headers.last();
        column.set_padding((0, u16::from(!is_last)));
        let is_wrapped = match *header {
            "outcomes" | "caught by" => true,
            header => is_name(header) && names > NAME_COLUMNS_MAX,
        };
        if !is_wrapped {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    let mut text = String::new();
    for row in table.lines() {
        line(&mut text, &format!("  {row}"));
    }
    text
}

/// `holds`, or `holds, bounded` where not every crash state was judged.
fn verdict(entry: &ScenarioEntry) -> String {
    let name = entry.verdict.name();
    match entry.verdict {
        Verdict::Holds if !entry.exhaustive => format!("{name}, bounded"),
        _ => name.to_owned(),
    }
}

/// A control is done with when it has shown what it must.
fn judged_control(entry: &ScenarioEntry) -> String {
    if entry.caught == Some(true) && !entry.exhaustive {
        format!("caught, of {}", states(entry.crash_states_log2))
    } else {
        judged(entry)
    }
}

/// How much of how many crash states was judged: `all of 2^12.3`, `0.6312 of 2^34`.
fn judged(entry: &ScenarioEntry) -> String {
    let states = states(entry.crash_states_log2);
    match (entry.exhaustive, entry.recoveries) {
        (true, _) => format!("all of {states}"),
        (false, 0) => "none".to_owned(),
        (false, _) => format!("{} of {states}", share(entry.coverage)),
    }
}

fn number(text: &str) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

/// Coloured by what the entry comes to, which for a control is not what it says.
fn colored(text: &str, meaning: Verdict, options: TableOptions) -> Cell {
    let cell = Cell::new(text);
    if options.color {
        cell.fg(match meaning {
            Verdict::Holds => Color::Green,
            Verdict::Violated | Verdict::HarnessBroken => Color::Red,
            Verdict::Unsupported | Verdict::Inconclusive => Color::Yellow,
        })
    } else {
        cell
    }
}

/// The same outside of tables.
fn painted(text: &str, meaning: Verdict, options: TableOptions) -> String {
    if !options.color {
        return text.to_owned();
    }
    let code = match meaning {
        Verdict::Holds => 32,
        Verdict::Violated | Verdict::HarnessBroken => 31,
        Verdict::Unsupported | Verdict::Inconclusive => 33,
    };
    format!("\x1b[1;{code}m{text}\x1b[0m")
}

fn line(text: &mut String, line: &str) {
    // Writing to a String cannot fail.
    writeln!(text, "{}", line.trim_end()).ok();
}
