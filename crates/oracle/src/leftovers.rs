//! Leftovers beside the target: bounded before a writer runs again, none after.

use std::collections::BTreeSet;

use untorn_spec::ViolationKind;

use crate::{FileFinding, Finding, Name, TreePath, Violation};

/// Judges the names in the target's directory: those that are not expected are leftovers, and more
/// of them than `bound` are a violation.
///
/// Expected are the names that were there before, the target's own, and whatever the subject
/// documents. The bound is the number of writers that may have died: each may leave one.
pub fn judge_leftovers(
    seen: &BTreeSet<Name>,
    expected: &BTreeSet<Name>,
    bound: usize,
) -> Option<Violation> {
    let leftovers: Vec<&Name> = seen.difference(expected).collect();
    if leftovers.len() <= bound {
        return None;
    }
    let finding = |&name: &&Name| FileFinding {
        path: TreePath::root().join(name.clone()),
        finding: Finding::Extra,
    };
    Some(Violation {
        kind: ViolationKind::Leftover,
        summary: format!(
            "{} left beside the target, {bound} allowed",
            leftovers.len()
        ),
        findings: leftovers.iter().map(finding).collect(),
    })
}
