//! [`Cell`]: a set of states still to be judged, kept as a fork off an earlier run.

use std::sync::Arc;

use crate::Path;
use crate::space::Space;

/// A choice by its index in the space, and a pick: half the size of a public decision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pick {
    pub(crate) index: u32,
    pub(crate) pick: u32,
}

/// A completed run: the cell it was given and what it decided beyond.
///
/// Its siblings share it, so a frontier entry costs two words and not a copy of its path.
#[derive(Debug)]
pub(crate) struct Run {
    cell: Cell,
    made: Box<[Pick]>,
}

/// The states that agree with all constraints of an earlier run's cell, with the first `fork` of
/// its decisions, and with `pick` for the one after those. Without a run: all states.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    run: Option<Arc<Run>>,
    fork: u32,
    pick: u32,
}

impl Run {
    pub(crate) fn new(cell: Cell, made: Box<[Pick]>) -> Arc<Self> {
        Arc::new(Self { cell, made })
    }

    pub(crate) fn made(&self) -> &[Pick] {
        &self.made
    }
}

impl Drop for Run {
    /// Unlinks the chain of earlier runs in a loop: it can be as long as the search, and dropping
    /// it by recursion would exhaust the stack.
    fn drop(&mut self) {
        let mut next = self.cell.run.take();
        while let Some(mut run) = next.and_then(Arc::into_inner) {
            next = run.cell.run.take();
        }
    }
}

impl Cell {
    /// The sibling of a run at one of its decisions.
    pub(crate) fn sibling(run: &Arc<Run>, fork: u32, pick: u32) -> Self {
        Self {
            run: Some(Arc::clone(run)),
            fork,
            pick,
        }
    }

    /// The constraints as a path, in time linear in their number (and its logarithm).
    pub(crate) fn path(&self, space: &Space) -> Path {
        let mut picks = Vec::new();
        let mut cell = self;
        while let Some(run) = &cell.run {
            let (before, forked) = run.made.split_at(cell.fork as usize);
            picks.push((space.id(forked[0].index), cell.pick));
            picks.extend(before.iter().map(|made| (space.id(made.index), made.pick)));
            cell = &run.cell;
        }
        picks.into_iter().collect()
    }
}

/// How far a set of constraints is from each of the two anchors.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Departures {
    pub(crate) from_first: u32,
    pub(crate) from_last: u32,
}

impl Departures {
    #[must_use]
    pub(crate) fn with(self, pick: u32, arity: u32) -> Self {
        Self {
            from_first: self.from_first + u32::from(pick != 0),
            from_last: self.from_last + u32::from(pick != arity - 1),
        }
    }

    pub(crate) fn least(self) -> u32 {
        self.from_first.min(self.from_last)
    }
}
