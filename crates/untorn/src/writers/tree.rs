//! From the flat lists of a scenario's tree to the nested one that is published.

use atomicdir::{Entry, Tree};
use untorn_spec::TreeContent;

/// The tree that a scenario's content stands for. Directories that hold a file and are not listed
/// are made with mode 0755.
pub fn tree_from(content: &TreeContent) -> Tree {
    let mut tree = Tree::new(0o755);
    for directory in &content.directories {
        at(&mut tree, &directory.path).mode = directory.mode;
    }
    for file in &content.files {
        let (parent, name) = match file.path.rsplit_once('/') {
            Some((parent, name)) => (parent, name),
            None => ("", file.path.as_str()),
        };
        at(&mut tree, parent).file(name, file.mode, file.bytes.clone());
    }
    tree
}

/// The directory at a path, made if need be.
fn at<'a>(tree: &'a mut Tree, path: &str) -> &'a mut Tree {
    let names = path.split('/').filter(|name| !name.is_empty());
    names.fold(tree, |tree, name| {
        let fresh = || Entry::Directory(Tree::new(0o755));
        let entry = tree.entries.entry(name.into()).or_insert_with(fresh);
        match entry {
            Entry::Directory(tree) => tree,
            Entry::File { .. } | Entry::Symlink { .. } => {
                unreachable!("scenarios with a file below a file are refused when they are read")
            }
        }
    })
}
