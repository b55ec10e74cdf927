//! Every fault at every boundary, counted: [`sweep`].

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io;
use std::rc::Rc;

use rustix::io::Errno;

use crate::op::{Completed, Op, OpKind};
use crate::plan::{After, Before, FaultPlan};

/// A fault that is tried at every boundary where it makes sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SweepAction {
    /// Death, before the first call and after each one: n + 1 boundaries.
    Kill,
    /// This error number in place of each call.
    FailAt(i32),
    /// This error number after each call, which is made all the same. Not `EINTR` after a write,
    /// which no system gives.
    FailAfter(i32),
    /// One byte taken by each write of more than that.
    Short,
    /// One byte taken by each write of more than that, and this error number from the next write.
    ShortThenFail(i32),
    /// Each call that only syncs is not made and reports success.
    DropSync,
}

impl SweepAction {
    /// Whether the action is tried at this call.
    fn applies_to(self, op: &Op) -> bool {
        match self {
            Self::Kill | Self::FailAt(_) => true,
            // A write that a signal interrupts after it has taken bytes says how many and not
            // `EINTR` (write(2)), so writing again after that error is right.
            Self::FailAfter(errno) => errno != Errno::INTR.raw_os_error() || !is_write(op.kind),
            // `1 bytes` is the detail of the one write that cannot be shorter.
            Self::Short | Self::ShortThenFail(_) => {
                is_write(op.kind) && !["0 bytes", "1 bytes"].contains(&first_two_words(&op.detail))
            }
            Self::DropSync => op.kind.is_sync(),
        }
    }
}

fn is_write(kind: OpKind) -> bool {
    matches!(kind, OpKind::Write | OpKind::Pwrite)
}

fn first_two_words(text: &str) -> &str {
    let end = text.match_indices(' ').nth(1).map(|(at, _)| at);
    &text[..end.unwrap_or(text.len())]
}

/// An action at one boundary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// What is done.
    pub action: SweepAction,
    /// At which call.
    pub op: Op,
    /// For a kill: before the call instead of after it.
    pub before: bool,
}

/// The text is the rule that does the same, as far as it has one.
impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { action, op, before } = self;
        let error = |errno: i32| io::Error::from_raw_os_error(errno);
        let side = if *before { "before" } else { "after" };
        match action {
            SweepAction::Kill => write!(f, "kill {side} {op}"),
            SweepAction::FailAt(errno) => write!(f, "{} at {op}", error(*errno)),
            SweepAction::FailAfter(errno) => write!(f, "{} after {op}", error(*errno)),
            SweepAction::Short => write!(f, "short 1 at {op}"),
            SweepAction::ShortThenFail(errno) => write!(f, "{} at {op} short=1", error(*errno)),
            SweepAction::DropSync => write!(f, "drop {op}"),
        }
    }
}

/// The plan of one run of a sweep: notes all calls, and breaks at most one.
#[derive(Debug, Default)]
pub struct SweepPlan {
    pair: Option<Pair>,
    seen: RefCell<Vec<Op>>,
    fired: Cell<bool>,
}

impl SweepPlan {
    /// A plan that breaks one call.
    pub fn breaking(pair: Pair) -> Self {
        Self {
            pair: Some(pair),
            ..Self::default()
        }
    }

    /// What this run breaks; `None` for the run that only counts.
    pub fn pair(&self) -> Option<&Pair> {
        self.pair.as_ref()
    }

    /// Whether the fault has struck.
    pub fn has_fired(&self) -> bool {
        self.fired.get()
    }

    /// The mutating calls so far.
    pub fn calls(&self) -> Vec<Op> {
        self.seen.borrow().clone()
    }

    /// The pair, if its call is this one. Paths may hold random parts, so the kind is compared.
    fn pair_at(&self, op: &Op) -> Option<&Pair> {
        self.pair
            .as_ref()
            .filter(|pair| pair.op.index == op.index && pair.op.kind == op.kind)
    }
}

impl FaultPlan for SweepPlan {
    fn before(&self, call: &Op) -> Before {
        self.seen.borrow_mut().push(call.clone());
        let Some(pair) = self.pair_at(call) else {
            return Before::Proceed;
        };
        let fault = match pair.action {
            SweepAction::Kill if pair.before => Before::Kill,
            SweepAction::Kill | SweepAction::FailAfter(_) => Before::Proceed,
            SweepAction::FailAt(errno) => Before::Fail(errno),
            SweepAction::Short => Before::Short {
                bytes: 1,
                then: None,
            },
            SweepAction::ShortThenFail(errno) => Before::Short {
                bytes: 1,
                then: Some(errno),
            },
            SweepAction::DropSync => Before::Drop,
        };
        self.fired.set(self.fired.get() || fault != Before::Proceed);
        fault
    }

    fn after(&self, call: &Completed) -> After {
        let fault = match self.pair_at(&call.op) {
            Some(pair) if !pair.before => match pair.action {
                SweepAction::Kill => After::Kill,
                SweepAction::FailAfter(errno) => After::Fail(errno),
                SweepAction::FailAt(_)
                | SweepAction::Short
                | SweepAction::ShortThenFail(_)
                | SweepAction::DropSync => After::Proceed,
            },
            _ => After::Proceed,
        };
        self.fired.set(self.fired.get() || fault != After::Proceed);
        fault
    }
}

/// What a sweep has done, in numbers.
#[derive(Debug, Clone)]
pub struct SweepReport<E> {
    /// Mutating calls of the run without a fault.
    pub calls: usize,
    /// Pairs that exist.
    pub pairs: usize,
    /// Pairs that were tried and whose fault struck.
    pub done: usize,
    /// Pairs whose run was not as it should be.
    pub failures: Vec<(Pair, E)>,
    /// Pairs whose run never made the call: the subject does not do the same each time.
    pub unreached: Vec<Pair>,
}

impl<E> SweepReport<E> {
    /// Whether every pair was tried, and every run was as it should be.
    pub fn holds(&self) -> bool {
        self.done == self.pairs && self.failures.is_empty() && self.unreached.is_empty()
    }
}

/// The text is `212 of 212 pairs at 53 calls, 0 failed`.
impl<E> fmt::Display for SweepReport<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} of {} pairs at {} calls, {} failed",
            self.done,
            self.pairs,
            self.calls,
            self.failures.len()
        )
    }
}

/// Runs once without a fault to count the calls, then once for each pair of an action and a
/// boundary.
///
/// `run` makes a fresh file system, wraps it in a [`FaultFs`](crate::FaultFs) with the plan that
/// it is given, runs the subject and says what is wrong, if anything is.
///
/// # Errors
/// What is wrong with the run without a fault.
pub fn sweep<E>(
    actions: &[SweepAction],
    mut run: impl FnMut(&Rc<SweepPlan>) -> Result<(), E>,
) -> Result<SweepReport<E>, E> {
    let counting = Rc::new(SweepPlan::default());
    run(&counting)?;
    let calls = counting.calls();
    let mut pairs = Vec::new();
    for op in &calls {
        for &action in actions.iter().filter(|action| action.applies_to(op)) {
            let pair = |before| Pair {
                action,
                op: op.clone(),
                before,
            };
            if action == SweepAction::Kill && op.index == 0 {
                pairs.push(pair(true));
            }
            pairs.push(pair(false));
        }
    }
    let mut report = SweepReport {
        calls: calls.len(),
        pairs: pairs.len(),
        done: 0,
        failures: Vec::new(),
        unreached: Vec::new(),
    };
    for pair in pairs {
        let plan = Rc::new(SweepPlan::breaking(pair.clone()));
        let result = run(&plan);
        if plan.has_fired() {
            report.done += 1;
        } else {
            report.unreached.push(pair.clone());
        }
        if let Err(error) = result {
            report.failures.push((pair, error));
        }
    }
    Ok(report)
}
