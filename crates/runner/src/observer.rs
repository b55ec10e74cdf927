//! Who is told what happens.

use anyhow::Result;
use untorn_spec::{CaseId, RunEvent};

use crate::Bundle;

/// Told of everything that happens in a run, from several threads.
pub trait Observer: Sync {
    /// Something happened.
    fn event(&self, event: &RunEvent);

    /// A recovery was made: how many there were in the case, and how far the space is covered.
    fn tick(&self, case: &CaseId, recoveries: u64, coverage: f64);

    /// Keeps a violation and fills in where it is and how to see it again.
    ///
    /// # Errors
    /// When it cannot be kept, which ends the case.
    fn keep(&self, bundle: &mut Bundle) -> Result<()>;
}
