//! [`Difference`]: where two snapshots differ, path by path.

use std::collections::BTreeSet;
use std::fmt;

use crate::{Attributes, Content, Node, TreePath, TreeSnapshot};

/// One path at which two snapshots differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Where.
    pub path: TreePath,
    /// How, in words, the first snapshot before the second.
    pub what: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.what)
    }
}

impl TreeSnapshot {
    /// Every path at which another snapshot differs from this one, in order of paths. Empty exactly
    /// when the two are equal.
    pub fn difference(&self, other: &Self) -> Vec<Difference> {
        let (before, after) = (self.nodes(), other.nodes());
        let paths: BTreeSet<_> = before.keys().chain(after.keys()).collect();
        let differs = |path: &TreePath| {
            let what = describe(before.get(path).copied(), after.get(path).copied())?;
            Some(Difference {
                path: path.clone(),
                what,
            })
        };
        paths.into_iter().filter_map(differs).collect()
    }
}

fn describe(before: Option<&Node>, after: Option<&Node>) -> Option<String> {
    match (before, after) {
        (None, None) => None,
        (Some(before), None) => Some(format!("gone: {before}")),
        (None, Some(after)) => Some(format!("added: {after}")),
        (Some(before), Some(after)) if before.is_the_same(after) => None,
        (Some(before), Some(after)) => {
            let mut parts = Vec::new();
            if !before.holds_the_same(after) {
                parts.push(describe_holding(before, after));
            }
            if let (Some(before), Some(after)) = (before.attributes(), after.attributes()) {
                parts.extend(describe_attributes(before, after));
            }
            Some(parts.join(", "))
        }
    }
}

fn describe_holding(before: &Node, after: &Node) -> String {
    match (before, after) {
        (
            Node::File {
                content: before, ..
            },
            Node::File { content: after, .. },
        ) => describe_content(before, after),
        (Node::Symlink { target: before, .. }, Node::Symlink { target: after, .. }) => {
            format!("target {before} became {after}")
        }
        _ => format!("{} became {}", before.kind_name(), after.kind_name()),
    }
}

fn describe_content(before: &Content, after: &Content) -> String {
    let lengths = if before.length() == after.length() {
        format!("{} bytes", before.length())
    } else {
        format!("{} bytes became {}", before.length(), after.length())
    };
    let mut pairs = before.known().iter().zip(after.known());
    match pairs.position(|(before, after)| before != after) {
        Some(offset) => format!("{lengths}, first difference at byte {offset}"),
        None => lengths,
    }
}

/// How two sets of attributes differ; empty when they are equal.
pub(crate) fn describe_attributes(before: &Attributes, after: &Attributes) -> Vec<String> {
    let mut parts = Vec::new();
    if before.mode != after.mode {
        parts.push(format!(
            "mode {:04o} became {:04o}",
            before.mode, after.mode
        ));
    }
    if before.owner != after.owner {
        let text = |attributes: &Attributes| match attributes.owner {
            Some(owner) => format!("{}:{}", owner.uid, owner.gid),
            None => "not captured".to_owned(),
        };
        parts.push(format!("owner {} became {}", text(before), text(after)));
    }
    if before.xattrs != after.xattrs {
        parts.push("extended attributes differ".to_owned());
    }
    parts
}
