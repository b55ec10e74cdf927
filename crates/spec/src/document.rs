//! A TOML text whose values can be traced back to where they stand.

use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::profile_list::names_help;
use crate::{ScenarioError, ScenarioFault};

/// A step on the way to a value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step<'k> {
    /// Into a table.
    Key(&'k str),
    /// Into an array.
    Index(usize),
}

/// A text, and the name of the file it came from.
pub(crate) struct Document<'t> {
    file_name: &'t str,
    text: &'t str,
}

impl<'t> Document<'t> {
    pub(crate) fn new(file_name: &'t str, text: &'t str) -> Self {
        Self { file_name, text }
    }

    /// The value that the text holds.
    pub(crate) fn parse<T: DeserializeOwned>(&self) -> Result<T, ScenarioError> {
        toml::from_str(self.text).map_err(|error| self.syntax_error(&error))
    }

    /// An error about the value at `path`, or about the nearest part of the way that is there.
    pub(crate) fn error_at(
        &self,
        path: &[Step<'_>],
        message: String,
        help: Option<String>,
    ) -> ScenarioError {
        let span = self.span_of(path).unwrap_or(0..0);
        self.error(span, field_name(path), message, help)
    }

    fn syntax_error(&self, error: &toml::de::Error) -> ScenarioError {
        let span = error.span().unwrap_or(0..0);
        let field = self.field_at(&span);
        let (message, help) = explain(error.message());
        self.error(span, field, message, help)
    }

    fn error(
        &self,
        span: Range<usize>,
        field: String,
        message: String,
        help: Option<String>,
    ) -> ScenarioError {
        let start = span.start.min(self.text.len());
        let line_start = self.text[..start].rfind('\n').map_or(0, |at| at + 1);
        let source_line = self.text[line_start..].lines().next().unwrap_or("");
        let line_end = line_start + source_line.len();
        let marked = self.text.get(start..span.end.min(line_end)).unwrap_or("");
        ScenarioFault {
            file: self.file_name.to_owned(),
            line: 1 + self.text[..line_start].matches('\n').count(),
            column: 1 + self.text[line_start..start].chars().count(),
            source_line: source_line.to_owned(),
            width: marked.chars().count(),
            field,
            message,
            help,
        }
        .into()
    }

    fn span_of(&self, path: &[Step<'_>]) -> Option<Range<usize>> {
        let table = DeTable::parse(self.text).ok()?;
        let (first, rest) = path.split_first()?;
        let Step::Key(name) = first else { return None };
        let mut value = table.get_ref().get(*name)?;
        for step in rest {
            let next = match step {
                Step::Key(name) => value.get_ref().get(*name),
                Step::Index(index) => value.get_ref().get(*index),
            };
            match next {
                Some(next) => value = next,
                None => break,
            }
        }
        Some(value.span())
    }

    /// The name of the innermost field whose key or value holds the span.
    fn field_at(&self, span: &Range<usize>) -> String {
        let mut name = String::new();
        // A text that is no TOML still names the fields that stand before the fault.
        let (table, _) = DeTable::parse_recoverable(self.text);
        name_in_table(table.get_ref(), span, &mut name);
        name
    }
}

fn holds(outer: &Range<usize>, inner: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end && inner.start < outer.end
}

fn name_in_table(table: &DeTable<'_>, span: &Range<usize>, name: &mut String) {
    for (key, value) in table {
        if holds(&key.span(), span) || contains(value, span) {
            push_key(key.get_ref(), name);
            name_in_value(value, span, name);
            return;
        }
    }
}

fn name_in_value(value: &Spanned<DeValue<'_>>, span: &Range<usize>, name: &mut String) {
    match value.get_ref() {
        DeValue::Table(table) => name_in_table(table, span, name),
        DeValue::Array(array) => {
            let held = array
                .iter()
                .enumerate()
                .find(|(_, item)| contains(item, span));
            if let Some((index, item)) = held {
                push_index(index, name);
                name_in_value(item, span, name);
            }
        }
        _ => {}
    }
}

/// The span of a table written under a header covers the header only, so its parts count too.
fn contains(value: &Spanned<DeValue<'_>>, span: &Range<usize>) -> bool {
    holds(&value.span(), span)
        || match value.get_ref() {
            DeValue::Table(table) => table
                .iter()
                .any(|(key, value)| holds(&key.span(), span) || contains(value, span)),
            DeValue::Array(array) => array.iter().any(|item| contains(item, span)),
            _ => false,
        }
}

fn push_key(key: &str, name: &mut String) {
    if !name.is_empty() {
        name.push('.');
    }
    name.push_str(key);
}

fn push_index(index: usize, name: &mut String) {
    name.push('[');
    name.push_str(&index.to_string());
    name.push(']');
}

/// The field that a path leads to, as text.
fn field_name(path: &[Step<'_>]) -> String {
    let mut name = String::new();
    for step in path {
        match step {
            Step::Key(key) => push_key(key, &mut name),
            Step::Index(index) => push_index(*index, &mut name),
        }
    }
    name
}

/// Splits serde's message into what is wrong and what would help.
fn explain(message: &str) -> (String, Option<String>) {
    let message = message.trim();
    let names: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    for (what, shown) in [
        ("unknown field", "unknown field"),
        ("unknown variant", "unknown name"),
    ] {
        if message.starts_with(what)
            && let Some((given, known)) = names.split_first()
        {
            return (format!("{shown} `{given}`"), Some(names_help(given, known)));
        }
    }
    if message.starts_with("missing field")
        && let [name] = names[..]
    {
        return (message.to_owned(), Some(format!("add `{name} = ...` here")));
    }
    (message.replace('\n', "; "), None)
}
