//! Fault rules as a plan: [`RulePlan`].

use std::cell::RefCell;
use std::fmt;

use untorn_fs::{After, Before, Completed, FaultPlan, Op, OpKind, RenameMode};
use untorn_spec::{CallKind, CallView, FaultAction, FaultRule, FaultRules, RuleCounter, When};

/// Does what rules say to the calls that they mean.
///
/// What is no fault of the call itself (a neighbour's commit, write-back, a pause) is left to a
/// function, which knows the file system.
pub struct RulePlan<D> {
    counter: RefCell<RuleCounter>,
    /// What is to be done after the call that is being made.
    after: RefCell<Vec<FaultAction>>,
    disturb: D,
}

impl<D> fmt::Debug for RulePlan<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RulePlan")
            .field("counter", &self.counter)
            .finish_non_exhaustive()
    }
}

impl<D: Fn(FaultAction)> RulePlan<D> {
    /// A plan for one run.
    pub fn new(rules: &FaultRules, disturb: D) -> Self {
        Self {
            counter: RefCell::new(RuleCounter::new(rules)),
            after: RefCell::default(),
            disturb,
        }
    }

    /// The rules whose call has not been made.
    pub fn untriggered(&self) -> Vec<FaultRule> {
        self.counter.borrow().untriggered().cloned().collect()
    }
}

/// A call as rules see it.
pub fn call_view(op: &Op) -> CallView<'_> {
    let is_exchange = op.kind == OpKind::Renameat2 && op.detail == RenameMode::Exchange.to_string();
    let kind = if is_exchange {
        Some(CallKind::Exchange)
    } else {
        CallKind::named(op.kind.name())
    };
    CallView {
        kind: kind.expect("every call has its word in the rules"),
        path: &op.path,
        second_path: op.second_path.as_deref(),
    }
}

impl<D: Fn(FaultAction)> FaultPlan for RulePlan<D> {
    /// Of several rules for one call the first that is a fault of the call itself counts.
    fn before(&self, call: &Op) -> Before {
        let mut fault = Before::Proceed;
        let mut after = Vec::new();
        for rule in self.counter.borrow_mut().next(&call_view(call)) {
            if rule.point.when == When::After {
                after.push(rule.action);
                continue;
            }
            let this = match rule.action {
                FaultAction::Kill => Before::Kill,
                FaultAction::Errno { errno, short } => match short {
                    None => Before::Fail(errno.number()),
                    Some(bytes) => Before::Short {
                        bytes: saturated(bytes),
                        then: Some(errno.number()),
                    },
                },
                FaultAction::Short { bytes } => Before::Short {
                    bytes: saturated(bytes),
                    then: None,
                },
                FaultAction::Drop => Before::Drop,
                FaultAction::NeighborCommit | FaultAction::Writeback | FaultAction::Pause => {
                    (self.disturb)(rule.action);
                    Before::Proceed
                }
            };
            if fault == Before::Proceed {
                fault = this;
            }
        }
        *self.after.borrow_mut() = after;
        fault
    }

    fn after(&self, _call: &Completed) -> After {
        let mut fault = After::Proceed;
        for action in self.after.take() {
            let this = match action {
                FaultAction::Kill => After::Kill,
                FaultAction::Errno { errno, .. } => After::Fail(errno.number()),
                FaultAction::NeighborCommit | FaultAction::Writeback | FaultAction::Pause => {
                    (self.disturb)(action);
                    After::Proceed
                }
                // These have no moment after a call.
                FaultAction::Short { .. } | FaultAction::Drop => After::Proceed,
            };
            if fault == After::Proceed {
                fault = this;
            }
        }
        fault
    }
}

fn saturated(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
