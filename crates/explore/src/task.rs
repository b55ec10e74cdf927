//! [`Task`]: one run to be made.

use crate::cell::{Cell, Departures};
use crate::{DefaultPick, Path};

/// One run to be made: picks that are fixed, and the default for all others.
///
/// A task has to go back to its explorer, by [`complete`](crate::Explorer::complete) or by
/// [`abandon`](crate::Explorer::abandon). One that is dropped counts as outstanding for ever: the
/// search then never finishes, and it never claims the states of that task.
#[derive(Debug)]
#[must_use = "a task that is dropped is never finished: complete or abandon it"]
pub struct Task {
    pub(crate) path: Path,
    pub(crate) default: DefaultPick,
    pub(crate) cell: Cell,
    pub(crate) departures: Departures,
    pub(crate) sampled: bool,
}

impl Task {
    /// The picks that are fixed.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The default for choices that the path does not name.
    pub fn default_pick(&self) -> DefaultPick {
        self.default
    }

    /// The pick for a choice: the fixed one, else the default's.
    ///
    /// The caller records a [`Decision`](crate::Decision) exactly when the path does not name the
    /// choice.
    pub fn pick(&self, id: u64, arity: u32) -> u32 {
        self.path
            .get(id)
            .unwrap_or_else(|| self.default.pick(id, arity))
    }

    /// Whether the sampler drew this task.
    pub fn is_sampled(&self) -> bool {
        self.sampled
    }
}
