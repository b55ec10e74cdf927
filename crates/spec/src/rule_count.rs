//! Which rules a call triggers: [`RuleCounter`].

use crate::rule::{FaultRule, FaultRules};
use crate::rule_call::{CallView, Ordinal};

/// Rules, and how many calls have matched each of them so far.
///
/// One for each run: ordinals are counted from its beginning.
#[derive(Debug, Clone)]
pub struct RuleCounter {
    rules: Vec<(FaultRule, u32)>,
}

impl RuleCounter {
    /// Nothing has matched yet.
    pub fn new(rules: &FaultRules) -> Self {
        Self {
            rules: rules.0.iter().map(|rule| (rule.clone(), 0)).collect(),
        }
    }

    /// The rules that mean this call. It has to be given every mutating call once, in order.
    pub fn next(&mut self, call: &CallView<'_>) -> Vec<&FaultRule> {
        let mut triggered = Vec::new();
        for (rule, matched) in &mut self.rules {
            if !rule.point.call.matches(call) {
                continue;
            }
            *matched += 1;
            match rule.point.call.ordinal {
                Ordinal::Every => triggered.push(&*rule),
                Ordinal::Nth(ordinal) if ordinal == *matched => triggered.push(&*rule),
                Ordinal::Nth(_) => {}
            }
        }
        triggered
    }

    /// The rules that no call has triggered: a run that ends with some was not the one meant.
    pub fn untriggered(&self) -> impl Iterator<Item = &FaultRule> {
        let waiting = |(rule, matched): &&(FaultRule, u32)| match rule.point.call.ordinal {
            Ordinal::Every => *matched == 0,
            Ordinal::Nth(ordinal) => *matched < ordinal,
        };
        self.rules.iter().filter(waiting).map(|(rule, _)| rule)
    }
}
