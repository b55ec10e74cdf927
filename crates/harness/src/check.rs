//! The entry: [`check_model`] and [`Check`].

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::ops::ControlFlow;
use std::rc::Rc;

use untorn_explore::Limits;
use untorn_fs::{
    FaultFd, FaultFs, FaultPlan, ModelFd, ModelFs, Persistence, SweepAction, SweepPlan,
};
use untorn_oracle::{Name, Oracle, OracleOptions, TreeSnapshot};

use crate::claim::Claim;
use crate::explore::explore;
use crate::judge::{Judge, Seen, Update};
use crate::record::{Moment, Picture, Recorder};
use crate::report::{CrashReport, Found, Report};
use crate::tree::write_tree;

/// The file system that the code under test is given.
pub type SubjectFs = FaultFs<ModelFs, Rc<dyn FaultPlan>>;

/// A descriptor of it.
pub type SubjectFd = FaultFd<ModelFd>;

/// Checks that an update turns `old` into `new` under the name `target`, whatever happens.
///
/// `update` is given the file system and the directory that holds the target. What it returns is
/// its [`Claim`]; a `Result` will do. It has to make the same calls each time.
///
/// Trees are compared by names, types, contents, link texts and modes. The umask is 022.
///
/// See [`Check`] for what is done, and for the options.
pub fn check_model<C: Into<Claim>>(
    target: impl AsRef<OsStr>,
    old: &TreeSnapshot,
    new: &TreeSnapshot,
    update: impl Fn(&SubjectFs, &SubjectFd) -> C,
) -> Report {
    Check::new(target, old, new).run(update)
}

/// A check with its options.
///
/// [`run`](Self::run) does this:
///
/// 1. Runs the update and cuts the power before the first call, after each one and after the
///    end. Every state that may be left is judged: old or new, and new only after the end.
/// 2. Runs the update once for each pair of a fault and a call ([`actions`](Self::actions)). What
///    it claims must be true, now and after a power cut at any later call.
/// 3. From every such state, crashed or killed or failed, runs the update once more: it must
///    succeed, end in the new tree, and leave nothing beside it.
#[derive(Debug, Clone)]
pub struct Check {
    pub(crate) target: OsString,
    pub(crate) old: TreeSnapshot,
    pub(crate) new: TreeSnapshot,
    pub(crate) models: Vec<Persistence>,
    pub(crate) actions: Vec<SweepAction>,
    pub(crate) runs_max: u64,
    pub(crate) leftovers_max: usize,
    pub(crate) converges: bool,
    pub(crate) may_be_absent: bool,
}

/// Numbers of the errors that are injected; those of every Unix.
const EINTR: i32 = 4;
const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// States that are wrong in the same way are found by the thousand; a few are enough.
const VIOLATIONS_MAX: u64 = 64;

impl Check {
    /// A check with all three models, all faults, and at most one leftover before the next run.
    pub fn new(target: impl AsRef<OsStr>, old: &TreeSnapshot, new: &TreeSnapshot) -> Self {
        Self {
            target: target.as_ref().to_owned(),
            old: old.clone(),
            new: new.clone(),
            models: Persistence::ALL.to_vec(),
            actions: vec![
                SweepAction::Kill,
                SweepAction::FailAt(EIO),
                SweepAction::FailAt(ENOSPC),
                SweepAction::FailAt(EINTR),
                SweepAction::FailAfter(EIO),
                SweepAction::FailAfter(EINTR),
                SweepAction::Short,
                SweepAction::ShortThenFail(ENOSPC),
            ],
            runs_max: 100_000,
            leftovers_max: 1,
            converges: true,
            may_be_absent: false,
        }
    }

    /// Which models of persistence are tried.
    #[must_use]
    pub fn models(mut self, models: &[Persistence]) -> Self {
        self.models = models.to_vec();
        self
    }

    /// Which faults are tried at every call; none skips that part.
    #[must_use]
    pub fn actions(mut self, actions: &[SweepAction]) -> Self {
        self.actions = actions.to_vec();
        self
    }

    /// How many recoveries are looked at for each moment and model at most. Where that is too
    /// few, the report is not exhaustive.
    #[must_use]
    pub fn runs_max(mut self, runs_max: u64) -> Self {
        self.runs_max = runs_max;
        self
    }

    /// How many names may lie beside the target before the next run. After it there may be none.
    #[must_use]
    pub fn leftovers_max(mut self, leftovers_max: usize) -> Self {
        self.leftovers_max = leftovers_max;
        self
    }

    /// Whether one more run must mend whatever is left.
    #[must_use]
    pub fn converges(mut self, converges: bool) -> Self {
        self.converges = converges;
        self
    }

    /// Whether the target may be missing for a while.
    #[must_use]
    pub fn may_be_absent(mut self, may_be_absent: bool) -> Self {
        self.may_be_absent = may_be_absent;
        self
    }

    /// Makes the check.
    ///
    /// # Panics
    /// If a tree cannot be written, or the update fails without a fault: then there is nothing
    /// to check.
    pub fn run<C: Into<Claim>>(&self, update: impl Fn(&SubjectFs, &SubjectFd) -> C) -> Report {
        let update = |fs: &SubjectFs, dir: &SubjectFd| update(fs, dir).into();
        let judge = self.judge(&update);
        let plan = Rc::new(SweepPlan::default());
        let crashes = self.crashes(&judge, &plan);
        let faults = (!self.actions.is_empty()).then(|| self.faults(&judge));
        Report {
            calls: plan.calls(),
            crashes,
            faults,
        }
    }

    pub(crate) fn judge<'a>(&'a self, update: Update<'a>) -> Judge<'a> {
        let options = OracleOptions {
            may_be_absent: self.may_be_absent,
        };
        let generations = vec![self.old.clone(), self.new.clone()];
        Judge {
            update,
            target: &self.target,
            oracle: Oracle::new(generations, options).expect("the trees can be read"),
            expected: BTreeSet::from([Name::from(self.target.as_os_str())]),
            leftovers_max: self.leftovers_max,
            converges: self.converges,
            known: RefCell::default(),
        }
    }

    /// A file system with the old tree on it, durably.
    pub(crate) fn fresh(&self) -> ModelFs {
        let model = ModelFs::new();
        let root = model.root();
        write_tree(&model, &root, &self.target, &self.old).expect("the old tree can be written");
        model.settle();
        model
    }

    /// Cuts the power after each call of a run.
    pub(crate) fn crashes(&self, judge: &Judge<'_>, plan: &Rc<SweepPlan>) -> CrashReport {
        let model = self.fresh();
        let start = Moment::now(&model, &self.models, None);
        let plan = Rc::clone(plan) as Rc<dyn FaultPlan>;
        let recorder = Rc::new(Recorder::new(plan, &model, &self.models, || true));
        let (claim, _) = judge.run(&model, Rc::clone(&recorder) as Rc<dyn FaultPlan>);
        assert_eq!(
            claim,
            Claim::Durable,
            "the update does not succeed without a fault"
        );
        let mut report = CrashReport::default();
        self.explore_moment(
            judge,
            &start,
            "at the beginning",
            Claim::Unknown,
            &mut report,
        );
        for moment in recorder.take_moments() {
            self.explore_moment(judge, &moment, "", Claim::Unknown, &mut report);
        }
        let end = Moment::now(&model, &self.models, None);
        self.explore_moment(
            judge,
            &end,
            "after success was reported",
            claim,
            &mut report,
        );
        report
    }

    /// Judges every state that a power cut at one moment may leave, unless the same was judged
    /// before.
    pub(crate) fn explore_moment(
        &self,
        judge: &Judge<'_>,
        moment: &Moment,
        name: &str,
        claim: Claim,
        report: &mut CrashReport,
    ) {
        let allowed = claim.after_power_cut();
        let name = match &moment.after {
            Some(call) => format!("after {call}"),
            None => name.to_owned(),
        };
        report.moments += 1;
        for picture in &moment.images {
            let key = (picture.key.clone(), allowed);
            let known = judge.known.borrow().get(&key).cloned();
            if let Some(known) = known {
                report.merge(known.repeated(&name));
                continue;
            }
            let found = self.explore_picture(judge, picture, &name, allowed);
            judge.known.borrow_mut().insert(key, found.clone());
            report.merge(found);
        }
    }

    fn explore_picture(
        &self,
        judge: &Judge<'_>,
        picture: &Picture,
        name: &str,
        allowed: &[usize],
    ) -> CrashReport {
        let mut report = CrashReport::default();
        let mut violations = 0;
        let limits = Limits::runs(self.runs_max, 0);
        let exploration = explore(&picture.image, limits, |model, path| {
            match judge.recovered(model, allowed) {
                Ok(Seen::Old) => report.old += 1,
                Ok(Seen::New) => report.new += 1,
                Err(violation) => {
                    violations += 1;
                    report.add(Found {
                        persistence: picture.persistence,
                        moment: name.to_owned(),
                        violation,
                        path: path(),
                        count: 1,
                    });
                }
            }
            if violations < VIOLATIONS_MAX {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        });
        report.runs = exploration.runs;
        report.unfinished = u64::from(!exploration.is_exhaustive());
        report
    }
}
