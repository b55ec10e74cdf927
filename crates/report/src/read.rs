//! Reads `events.jsonl` back.

use std::path::{Path, PathBuf};

use untorn_spec::RunEvent;

/// The events of a run, as `events.jsonl` holds them.
///
/// A last line without an end is left out: the run was killed while it wrote.
///
/// # Errors
/// When the file cannot be read, or a whole line is no event.
pub fn read_events(path: &Path) -> Result<Vec<RunEvent>, ReadError> {
    let text = std::fs::read_to_string(path).map_err(|source| ReadError::File {
        path: path.to_owned(),
        source,
    })?;
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let lines = whole.lines().enumerate();
    lines
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(number, line)| {
            serde_json::from_str(line).map_err(|source| ReadError::Line {
                path: path.to_owned(),
                line: number + 1,
                source,
            })
        })
        .collect()
}

/// Why events cannot be read back.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A line is no event.
    #[error("{}:{line}: no event that this version knows", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Why.
        source: serde_json::Error,
    },
}
