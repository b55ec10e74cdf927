//! What the tests share: trees.

#![allow(dead_code, reason = "no test uses all of it")]

use atomicdir::Tree;
use untorn_harness::{Node, TreeSnapshot};
use untorn_oracle::Content;

pub(crate) const TARGET: &str = "live";

/// A pair that must never be mixed.
pub(crate) fn pair(generation: &str) -> TreeSnapshot {
    let crt = Node::file(0o644, format!("certificate {generation}"));
    let key = Node::file(0o600, format!("key {generation}"));
    TreeSnapshot::new(Node::directory(0o755, [("tls.crt", crt), ("tls.key", key)]))
}

pub(crate) fn old_tree() -> TreeSnapshot {
    pair("old")
}

/// The pair, and some of everything else.
pub(crate) fn new_tree() -> TreeSnapshot {
    let crt = Node::file(0o644, "certificate new");
    let key = Node::file(0o600, "key new");
    let leaf = Node::file(0o400, vec![7; 5000]);
    let inner = Node::directory(0o750, [("leaf", leaf), ("up", Node::symlink("../tls.crt"))]);
    let entries = [("inner", inner), ("tls.crt", crt), ("tls.key", key)];
    TreeSnapshot::new(Node::directory(0o755, entries))
}

/// A tree as the sync core takes it.
pub(crate) fn from_snapshot(tree: &TreeSnapshot) -> Tree {
    let Node::Directory {
        attributes,
        entries,
    } = tree.root()
    else {
        panic!("no directory: {tree:?}");
    };
    let mut into = Tree::new(attributes.mode);
    for (name, node) in entries {
        let name = name.as_os_str();
        match node {
            Node::File {
                attributes,
                content: Content::Whole(bytes),
            } => into.file(name, attributes.mode, bytes.clone()),
            Node::Symlink { target, .. } => into.symlink(name, target.as_os_str()),
            directory => into.directory(name, from_snapshot(&TreeSnapshot::new(directory.clone()))),
        };
    }
    into
}
