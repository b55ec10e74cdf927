//! What shows a run while it goes on.

use untorn_spec::{CaseId, RunEvent};

/// Is told what happens in a run, from any thread.
pub trait Progress: Send + Sync {
    /// An event was emitted.
    fn event(&self, event: &RunEvent);

    /// A running case has made so many recoveries, and its current crash space is covered so far,
    /// from 0 to 1. May be called as often as is convenient.
    fn tick(&self, case: &CaseId, recoveries: u64, coverage: f64);

    /// The run is over, however it ended: leaves nothing on the screen.
    fn finish(&self);
}

/// Shows nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn event(&self, _event: &RunEvent) {}

    fn tick(&self, _case: &CaseId, _recoveries: u64, _coverage: f64) {}

    fn finish(&self) {}
}
