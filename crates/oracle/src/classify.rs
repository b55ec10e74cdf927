//! From findings to one kind of violation: the total order among kinds.

use std::collections::{BTreeMap, BTreeSet};

use untorn_spec::ViolationKind;

use crate::examine::{Examined, Site};
use crate::{FileFinding, Finding, Node, TreePath, TreeSnapshot};

/// Finds out what is wrong with a tree that equals no generation.
///
/// Where several kinds apply, the first of this list is reported:
///
/// 1. `missing`, when the root is not there: nothing else can be said.
/// 2. `empty`, when a file that belongs here has size 0, or the root has no entries.
/// 3. `truncated`, when a file is a beginning of its content, or that and zeros.
/// 4. `corrupt`, when a file holds what no generation has, or is of another type, or cannot be
///    read.
/// 5. `missing`, when an entry is not there that every allowed generation has, or every one of
///    them that has the directory around it.
/// 6. `mixed`, when everything belongs to some generation and not all to one.
/// 7. `lost-acknowledged`, when all belongs to a generation that is no longer allowed.
/// 8. `mode`, when modes, owners or extended attributes are those of no generation.
/// 9. `leftover`, when there is something that no generation has.
///
/// Damage to what is there comes before what is not there (2 to 4 before 5), since a lost entry
/// beside damaged ones usually has the same cause, and of damage the most telling comes first: an
/// empty file is a missing fsync, while corruption may be anything. Questions about the whole (6
/// and 7) only make sense where each part is sound. The two that leave all content usable come
/// last.
pub(crate) fn classify(
    seen: &TreeSnapshot,
    generations: &[TreeSnapshot],
    allowed: &[usize],
) -> (ViolationKind, Vec<FileFinding>) {
    let (findings, belongings) = examine_all(seen, generations, allowed);
    let has = |kind| {
        findings
            .iter()
            .any(|found| found.finding.damage() == Some(kind))
    };
    let damage = [
        ViolationKind::Empty,
        ViolationKind::Truncated,
        ViolationKind::Corrupt,
        ViolationKind::Missing,
    ];
    let mut common: BTreeSet<usize> = (0..generations.len()).collect();
    for belongs_to in &belongings {
        common.retain(|generation| belongs_to.contains(generation));
    }
    let attributes = |found: &FileFinding| matches!(found.finding, Finding::Attributes { .. });
    let kind = if let Some(kind) = damage.into_iter().find(|&kind| has(kind)) {
        kind
    } else if common.is_empty() {
        ViolationKind::Mixed
    } else if !common.iter().any(|generation| allowed.contains(generation)) {
        ViolationKind::LostAcknowledged
    } else if findings.iter().any(attributes) {
        ViolationKind::Mode
    } else {
        ViolationKind::Leftover
    };
    (kind, findings)
}

/// A finding for every path that was seen or that some generation has, except below a path that
/// says it all: one that is missing, extra, or no directory.
fn examine_all(
    seen: &TreeSnapshot,
    generations: &[TreeSnapshot],
    allowed: &[usize],
) -> (Vec<FileFinding>, Vec<Vec<usize>>) {
    let seen_nodes = seen.nodes();
    let generation_nodes: Vec<_> = generations.iter().map(TreeSnapshot::nodes).collect();
    let mut paths: BTreeSet<&TreePath> = seen_nodes.keys().collect();
    paths.extend(generation_nodes.iter().flat_map(|nodes| nodes.keys()));

    let mut findings = Vec::new();
    let mut belongings = Vec::new();
    let mut explained: BTreeSet<&TreePath> = BTreeSet::new();
    for path in paths {
        let parent = path.parent();
        if parent
            .as_ref()
            .is_some_and(|parent| explained.contains(parent))
        {
            explained.insert(path);
            continue;
        }
        let is_directory = |node: Option<&&Node>| matches!(node, Some(Node::Directory { .. }));
        let surrounds = |nodes: &BTreeMap<TreePath, &Node>| {
            parent
                .as_ref()
                .is_none_or(|parent| is_directory(nodes.get(parent)))
        };
        let site = Site {
            seen: seen_nodes.get(path).copied(),
            generations: generation_nodes
                .iter()
                .map(|nodes| nodes.get(path).copied())
                .collect(),
            surrounded: generation_nodes.iter().map(surrounds).collect(),
        };
        let Examined {
            mut finding,
            belongs_to,
        } = site.examine(allowed);
        if path.is_root() && is_newly_empty(&site) {
            finding = Finding::EmptyDirectory;
        }
        if !is_directory(site.seen.as_ref())
            || matches!(finding, Finding::Extra | Finding::EmptyDirectory)
        {
            explained.insert(path);
        }
        belongings.extend(belongs_to);
        findings.push(FileFinding {
            path: path.clone(),
            finding,
        });
    }
    (findings, belongings)
}

/// Whether a directory has no entries although every generation has some in it.
fn is_newly_empty(site: &Site<'_>) -> bool {
    let is_empty =
        |node: &Node| matches!(node, Node::Directory { entries, .. } if entries.is_empty());
    site.seen.is_some_and(is_empty) && !site.generations.iter().flatten().any(|node| is_empty(node))
}
