//! Judging one state: [`Judge`].

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::rc::Rc;

use untorn_fs::{FaultFs, FaultPlan, Fs, ImageKey, ModelFs, NoFault};
use untorn_oracle::{Name, Oracle, Violation, judge_leftovers};
use untorn_spec::ViolationKind;

use crate::check::{SubjectFd, SubjectFs};
use crate::claim::Claim;
use crate::report::CrashReport;
use crate::tree::capture;

/// The code under test, whatever it returns.
pub(crate) type Update<'a> = &'a dyn Fn(&SubjectFs, &SubjectFd) -> Claim;

/// Knows what is right.
pub(crate) struct Judge<'a> {
    pub(crate) update: Update<'a>,
    pub(crate) target: &'a OsStr,
    pub(crate) oracle: Oracle,
    /// Names beside the target that may stay, the target's own among them.
    pub(crate) expected: BTreeSet<Name>,
    pub(crate) leftovers_max: usize,
    pub(crate) converges: bool,
    /// What was found in images that were judged already, and against which generations.
    pub(crate) known: RefCell<HashMap<(ImageKey, &'static [usize]), CrashReport>>,
}

impl Judge<'_> {
    /// Runs the code under test.
    pub(crate) fn run(&self, model: &ModelFs, plan: Rc<dyn FaultPlan>) -> (Claim, bool) {
        let fs = FaultFs::new(model.clone(), plan);
        let root = fs.root(model.root());
        let claim = (self.update)(&fs, &root);
        (claim, fs.is_dead())
    }

    /// Judges what is seen now: the tree is of an allowed generation, and no more lies beside it
    /// than one dead writer may leave. Gives the generation.
    pub(crate) fn look(&self, model: &ModelFs, allowed: &[usize]) -> Result<Seen, Violation> {
        let seen = self.tree(model, allowed)?;
        self.leftovers(model, self.leftovers_max)?;
        Ok(seen)
    }

    /// Judges a state after a crash: what is seen, and that one more run mends what is left.
    pub(crate) fn recovered(&self, model: &ModelFs, allowed: &[usize]) -> Result<Seen, Violation> {
        let seen = self.look(model, allowed)?;
        if self.converges {
            self.converge(model)?;
        }
        Ok(seen)
    }

    /// Runs the code once more, undisturbed: it succeeds, the tree is the new one, and nothing
    /// lies beside it.
    pub(crate) fn converge(&self, model: &ModelFs) -> Result<(), Violation> {
        let (claim, _) = self.run(model, Rc::new(NoFault));
        if claim != Claim::Durable {
            let summary = format!("one more run, undisturbed, claims {claim}");
            return Err(violation(ViolationKind::Diverges, summary));
        }
        let seen = self.capture(model)?;
        let judgement = self.oracle.judge_converged(&seen, 1);
        if let Some(violation) = judgement.violation {
            return Err(violation);
        }
        self.leftovers(model, 0)
    }

    fn tree(&self, model: &ModelFs, allowed: &[usize]) -> Result<Seen, Violation> {
        let seen = self.capture(model)?;
        let judgement = self.oracle.judge(&seen, allowed);
        match judgement.violation {
            Some(violation) => Err(violation),
            None if seen == self.oracle.generations()[1] => Ok(Seen::New),
            None => Ok(Seen::Old),
        }
    }

    fn capture(&self, model: &ModelFs) -> Result<untorn_oracle::TreeSnapshot, Violation> {
        capture(model, &model.root(), self.target)
            .map_err(|error| violation(ViolationKind::Corrupt, format!("cannot be read: {error}")))
    }

    fn leftovers(&self, model: &ModelFs, bound: usize) -> Result<(), Violation> {
        let names = model.read_dir(&model.root());
        let names = names.map_err(|error| {
            violation(
                ViolationKind::Corrupt,
                format!("cannot list the parent: {error}"),
            )
        })?;
        let is_expected = |name: &OsStr| {
            let mut expected = self.expected.iter();
            expected.any(|expected| expected.as_os_str() == name)
        };
        let mut left = names
            .into_iter()
            .map(|entry| entry.name)
            .filter(|name| !is_expected(name))
            .peekable();
        if left.peek().is_none() {
            return Ok(());
        }
        let left = left.map(|name| Name::from(name.as_os_str())).collect();
        judge_leftovers(&left, &self.expected, bound).map_or(Ok(()), Err)
    }
}

/// What was seen, where it was right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    Old,
    New,
}

pub(crate) fn violation(kind: ViolationKind, summary: String) -> Violation {
    Violation {
        kind,
        summary,
        findings: Vec::new(),
    }
}
