//! What is wrong with a rule's text, and where: [`RuleError`].

use std::fmt;

/// A rule's text could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleError {
    /// The line, from 1.
    pub line: usize,
    /// The column, in characters from 1.
    pub column: usize,
    /// What should stand there.
    pub expected: String,
    /// What stands there; empty at the end of a rule.
    pub found: String,
    /// The word that was most likely meant.
    pub suggestion: Option<String>,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 1 {
            write!(f, "line {}, ", self.line)?;
        }
        write!(f, "column {}: expected {}", self.column, self.expected)?;
        if self.found.is_empty() {
            f.write_str(", found the end of the rule")?;
        } else {
            write!(f, ", found `{}`", self.found)?;
        }
        match &self.suggestion {
            Some(word) => write!(f, "; did you mean `{word}`?"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for RuleError {}
