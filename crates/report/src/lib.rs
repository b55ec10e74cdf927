//! Folds run events into reports: terminal table, stories, certificate, `JUnit`, HTML, and shows
//! progress while events arrive.
//!
//! Events are the only link to running: whatever a report says can be said again from the
//! `events.jsonl` of a run folder ([`read_events`], [`Fold`]). Nothing here decides anything about
//! a crash state; the one rule of its own is how verdicts of cases make the verdict of the whole,
//! see [`Fold::verdict`].

mod bars;
mod entry;
mod fold;
mod html;
mod judge;
mod junit;
mod matrix;
mod matrix_page;
mod progress;
mod read;
mod story;
mod table;
mod words;

pub use bars::Bars;
pub use fold::Fold;
pub use html::write_html;
pub use junit::{JunitError, write_junit};
pub use matrix::{GuestTimes, Matrix, MatrixCell, MatrixPart, MatrixRow};
pub use matrix_page::{matrix_table, write_matrix_html};
pub use progress::{Progress, Silent};
pub use read::{ReadError, read_events};
pub use story::story;
pub use table::{TableOptions, table};
