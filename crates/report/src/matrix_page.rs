//! A matrix as a page, `matrix.html`, and as a table for the terminal.

use std::fmt::Write as _;
use std::io::{self, Write};

use askama::Template;
use untorn_spec::Verdict;

use crate::matrix::{Matrix, MatrixCell, MatrixRow};
use crate::words::{seconds, share};

/// Writes a matrix as a page that needs nothing else.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write_matrix_html(out: &mut impl Write, matrix: &Matrix) -> io::Result<()> {
    let page = Page {
        matrix,
        class: class(matrix.verdict),
        seconds: seconds(matrix.seconds),
        rows: matrix.kernels.iter().map(Row::new).collect(),
    };
    page.write_into(out)
}

/// What the template shows. Texts are escaped by it.
#[derive(Template)]
#[template(path = "matrix.html")]
struct Page<'m> {
    matrix: &'m Matrix,
    class: &'static str,
    seconds: String,
    rows: Vec<Row<'m>>,
}

#[expect(clippy::struct_field_names, reason = "the template says what it shows")]
struct Row<'m> {
    row: &'m MatrixRow,
    class: &'static str,
    boot: String,
    first_case: String,
    seconds: String,
    cells: Vec<Cell<'m>>,
}

#[expect(clippy::struct_field_names, reason = "the template says what it shows")]
struct Cell<'m> {
    cell: &'m MatrixCell,
    class: &'static str,
    explored: String,
    rate: String,
}

impl<'m> Row<'m> {
    fn new(row: &'m MatrixRow) -> Self {
        Self {
            row,
            class: class(row.verdict),
            boot: seconds(row.boot_seconds),
            first_case: seconds(row.first_case_seconds),
            seconds: seconds(row.seconds),
            cells: row.cells.iter().map(Cell::new).collect(),
        }
    }
}

impl<'m> Cell<'m> {
    fn new(cell: &'m MatrixCell) -> Self {
        Self {
            cell,
            class: class(cell.verdict),
            explored: explored(cell),
            rate: format!("{:.0}", cell.recoveries_per_second),
        }
    }
}

/// How much of the correct writers' crash states was judged.
fn explored(cell: &MatrixCell) -> String {
    if cell.exhaustive {
        "exhaustive".to_owned()
    } else if cell.recoveries == 0 {
        "nothing".to_owned()
    } else {
        format!("coverage {}", share(cell.coverage))
    }
}

fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "good",
        Verdict::Violated | Verdict::HarnessBroken => "bad",
        Verdict::Unsupported | Verdict::Inconclusive => "unsure",
    }
}

/// A matrix as text: a line per kernel, and below it the reasons of what is neither `holds` nor
/// `violated`.
pub fn matrix_table(matrix: &Matrix) -> String {
    let mut rows = vec![
        std::iter::once("kernel".to_owned())
            .chain(matrix.profiles.iter().cloned())
            .collect::<Vec<String>>(),
    ];
    rows.extend(matrix.kernels.iter().map(|row| {
        let cells = row.cells.iter().map(|cell| {
            format!(
                "{} ({}, {}/{} controls, {} recoveries, {:.0}/s)",
                cell.verdict,
                explored(cell),
                cell.controls_caught,
                cell.controls,
                cell.recoveries,
                cell.recoveries_per_second
            )
        });
        std::iter::once(row.name.clone()).chain(cells).collect()
    }));
    let columns = matrix.profiles.len() + 1;
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths);
        let line: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        text.push_str(line.join("  ").trim_end());
        text.push('\n');
    }
    for row in &matrix.kernels {
        for cell in &row.cells {
            if let Some(reason) = &cell.reason {
                // Writing to a String cannot fail.
                writeln!(text, "{} {}: {reason}", row.name, cell.profile).ok();
            }
        }
    }
    text
}
