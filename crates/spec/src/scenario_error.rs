//! What is wrong with a scenario or suite file, shown at its place in the file.

use std::fmt;
use std::ops::Deref;

/// A fault in a scenario or suite file.
///
/// Its text is meant to be printed as it is: it names file, line and column, shows the line and
/// says what would help. The parts can be read as those of a [`ScenarioFault`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioError(Box<ScenarioFault>);

/// The parts of a [`ScenarioError`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioFault {
    /// Name of the file, as it was given.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column, in characters from 1.
    pub column: usize,
    /// The line itself.
    pub source_line: String,
    /// Number of characters from the column on that are meant.
    pub width: usize,
    /// The field, such as `tree.file[1].path`; empty for the file as a whole.
    pub field: String,
    /// What is wrong.
    pub message: String,
    /// What would help.
    pub help: Option<String>,
}

impl std::error::Error for ScenarioError {}

impl From<ScenarioFault> for ScenarioError {
    fn from(fault: ScenarioFault) -> Self {
        Self(Box::new(fault))
    }
}

impl Deref for ScenarioError {
    type Target = ScenarioFault;

    fn deref(&self) -> &ScenarioFault {
        &self.0
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ScenarioFault {
            file,
            line,
            column,
            source_line,
            width,
            field,
            message,
            help,
        } = &**self;
        let number = line.to_string();
        let margin = " ".repeat(number.len());
        writeln!(f, "{file}:{line}:{column}: {message}")?;
        writeln!(f, "{margin} |")?;
        writeln!(f, "{number} | {source_line}")?;
        // Tabs are kept, so that the mark stands below what it means however wide a tab is.
        let indent: String = source_line
            .chars()
            .take(column - 1)
            .map(|c| if c == '\t' { '\t' } else { ' ' })
            .collect();
        write!(f, "{margin} | {indent}{}", "^".repeat((*width).max(1)))?;
        if !field.is_empty() {
            write!(f, "\n{margin} = field: {field}")?;
        }
        if let Some(help) = help {
            write!(f, "\n{margin} = help: {help}")?;
        }
        Ok(())
    }
}
