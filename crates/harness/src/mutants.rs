//! Which syncs are load-bearing: [`Mutant`].

use std::collections::BTreeSet;
use std::rc::Rc;

use untorn_fs::{Op, Pair, Persistence, SweepAction, SweepPlan};
use untorn_spec::ViolationKind;

use crate::check::{Check, SubjectFd, SubjectFs};
use crate::claim::Claim;

/// The update with one of its syncs dropped.
#[derive(Debug, Clone)]
pub struct Mutant {
    /// The call that was not made and reported success.
    pub dropped: Op,
    /// What is found then. Empty where nothing depends on that call.
    pub found: BTreeSet<(Persistence, ViolationKind)>,
}

impl Mutant {
    /// Whether something depends on the call under this model.
    pub fn is_load_bearing(&self, persistence: Persistence) -> bool {
        self.found.iter().any(|(model, _)| *model == persistence)
    }
}

impl Check {
    /// Drops each sync of the update in turn and cuts the power after each call.
    ///
    /// # Panics
    /// As for [`run`](Self::run).
    pub fn mutants<C: Into<Claim>>(
        &self,
        update: impl Fn(&SubjectFs, &SubjectFd) -> C,
    ) -> Vec<Mutant> {
        let update = |fs: &SubjectFs, dir: &SubjectFd| update(fs, dir).into();
        let judge = self.judge(&update);
        let whole = Rc::new(SweepPlan::default());
        judge.run(&self.fresh(), Rc::clone(&whole) as _);
        let syncs = whole.calls().into_iter().filter(|op| op.kind.is_sync());
        let mutant = |dropped: Op| {
            let plan = Rc::new(SweepPlan::breaking(Pair {
                action: SweepAction::DropSync,
                op: dropped.clone(),
                before: false,
            }));
            let report = self.crashes(&judge, &plan);
            Mutant {
                dropped,
                found: report.found.into_keys().collect(),
            }
        };
        syncs.map(mutant).collect()
    }
}
