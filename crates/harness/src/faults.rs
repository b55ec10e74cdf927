//! Every fault at every call: what is claimed must be true.

use std::fmt;
use std::rc::Rc;

use untorn_fs::{FaultPlan, SweepPlan, SweepReport, sweep};
use untorn_oracle::Violation;

use crate::check::Check;
use crate::claim::Claim;
use crate::judge::Judge;
use crate::record::{Moment, Recorder};
use crate::report::CrashReport;

/// What is wrong with a run that had a fault.
#[derive(Debug, Clone)]
pub struct FaultFailure {
    /// What the update claimed; [`Claim::Unknown`] if it was killed.
    pub claim: Claim,
    /// When it is seen.
    pub moment: String,
    /// What is wrong.
    pub violation: Violation,
}

impl fmt::Display for FaultFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            claim,
            moment,
            violation,
        } = self;
        write!(f, "{violation} ({moment}; it claims {claim})")
    }
}

/// What the runs with faults found, and how many crash states were looked at for it.
#[derive(Debug, Clone)]
pub(crate) struct Faults {
    pub(crate) sweep: SweepReport<FaultFailure>,
    pub(crate) crashes: CrashReport,
}

impl Check {
    /// Runs the update with each fault at each call.
    pub(crate) fn faults(&self, judge: &Judge<'_>) -> Faults {
        let mut crashes = CrashReport::default();
        let sweep = sweep(&self.actions, |plan| {
            if plan.pair().is_none() {
                let model = self.fresh();
                let (claim, _) = judge.run(&model, Rc::clone(plan) as Rc<dyn FaultPlan>);
                assert_eq!(claim, Claim::Durable, "success without a fault");
                return Ok(());
            }
            self.one_fault(judge, plan, &mut crashes)
        })
        .expect("the run without a fault is judged elsewhere");
        Faults { sweep, crashes }
    }

    fn one_fault(
        &self,
        judge: &Judge<'_>,
        plan: &Rc<SweepPlan>,
        crashes: &mut CrashReport,
    ) -> Result<(), FaultFailure> {
        let model = self.fresh();
        let fired = Rc::clone(plan);
        let recorder = Rc::new(Recorder::new(
            Rc::clone(plan) as Rc<dyn FaultPlan>,
            &model,
            &self.models,
            move || fired.has_fired(),
        ));
        let (claim, died) = judge.run(&model, Rc::clone(&recorder) as Rc<dyn FaultPlan>);
        let claim = if died { Claim::Unknown } else { claim };
        let failure = |moment: &str| {
            let moment = moment.to_owned();
            move |violation| FaultFailure {
                claim,
                moment,
                violation,
            }
        };

        // After the power is back, at each call behind the fault and at the end.
        let mut explore = |moment: &Moment, name: &str, claim: Claim| {
            let mut found = CrashReport::default();
            self.explore_moment(judge, moment, name, claim, &mut found);
            let first = found.found.values().next().cloned();
            crashes.merge(found);
            match first {
                None => Ok(()),
                Some(found) => {
                    let moment = format!("power cut {}, {}", found.moment, found.persistence);
                    Err(failure(&moment)(found.violation))
                }
            }
        };
        for moment in recorder.take_moments() {
            explore(&moment, "", Claim::Unknown)?;
        }
        let end = Moment::now(&model, &self.models, None);
        explore(&end, "at the end", claim)?;

        // While the system runs on.
        judge
            .look(&model, claim.live())
            .map_err(failure("when it has returned"))?;
        if self.converges {
            judge
                .converge(&model)
                .map_err(failure("after one more run"))?;
            let end = Moment::now(&model, &self.models, None);
            explore(&end, "after one more run", Claim::Durable)?;
        }
        Ok(())
    }
}
