//! [`TreeSnapshot`]: what is seen under a path.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Node, TreeDigest, TreePath};

/// What is seen under a path at one moment.
///
/// As JSON it takes three levels of nesting for each level of directories. Readers that limit
/// nesting to 128 levels, as `serde_json` does, take trees up to 40 directories deep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TreeSnapshot {
    #[serde(deserialize_with = "deserialize_pruned")]
    root: Node,
}

impl TreeSnapshot {
    /// A snapshot of the given tree. Entries that are [`Node::Missing`] are left out: an entry that
    /// is not there has no name.
    pub fn new(mut root: Node) -> Self {
        prune(&mut root);
        Self { root }
    }

    /// The snapshot of a path where nothing is.
    pub fn missing() -> Self {
        Self {
            root: Node::Missing,
        }
    }

    /// What is at the path itself.
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// Whether nothing is there.
    pub fn is_missing(&self) -> bool {
        self.root == Node::Missing
    }

    /// The snapshot in 32 bytes: equal exactly when the snapshots are.
    pub fn digest(&self) -> TreeDigest {
        TreeDigest::of(&self.root)
    }

    /// Everything there is, by path, the root included. Empty when nothing is there.
    pub fn nodes(&self) -> BTreeMap<TreePath, &Node> {
        let mut nodes = BTreeMap::new();
        let mut waiting = vec![(TreePath::root(), &self.root)];
        while let Some((path, node)) = waiting.pop() {
            if let Node::Directory { entries, .. } = node {
                waiting.extend(
                    entries
                        .iter()
                        .map(|(name, node)| (path.join(name.clone()), node)),
                );
            }
            if *node != Node::Missing {
                nodes.insert(path, node);
            }
        }
        nodes
    }
}

fn prune(node: &mut Node) {
    if let Node::Directory { entries, .. } = node {
        entries.retain(|_, entry| *entry != Node::Missing);
        entries.values_mut().for_each(prune);
    }
}

fn deserialize_pruned<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Node, D::Error> {
    let mut root = Node::deserialize(deserializer)?;
    prune(&mut root);
    Ok(root)
}
