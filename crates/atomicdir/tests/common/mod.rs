//! What the tests share: trees, a scratch directory and its content, and a breaking [`Fs`].
//!
//! [`Fs`]: untorn_fs::Fs

#![allow(dead_code, reason = "no test uses all of it")]
#![allow(
    clippy::unwrap_used,
    reason = "a helper that cannot go on fails its test"
)]

pub(crate) mod disturbed;

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use atomicdir::{Options, PublishError, Published, Tree};
use untorn_fs::{Fs, OsFs};

pub(crate) const TARGET: &str = "live";

pub(crate) fn target() -> &'static OsStr {
    OsStr::new(TARGET)
}

/// A pair that must never be mixed.
pub(crate) fn pair(generation: &str) -> Tree {
    let mut tree = Tree::new(0o755);
    tree.file("tls.crt", 0o644, format!("certificate {generation}"))
        .file("tls.key", 0o600, format!("key {generation}"));
    tree
}

/// Some of everything.
pub(crate) fn varied() -> Tree {
    let mut leaf = Tree::new(0o700);
    leaf.file("empty", 0o400, "");
    let mut inner = Tree::new(0o555);
    inner
        .file("run.sh", 0o4755, "#!/bin/sh\n")
        .directory("leaf", leaf)
        .symlink("up", "../tls.crt");
    let mut tree = pair("varied");
    tree.mode = 0o1777;
    tree.directory("inner", inner)
        .file("world", 0o666, vec![7; 100_000]);
    tree
}

/// A directory to publish in.
pub(crate) struct Scratch {
    dir: tempfile::TempDir,
    pub(crate) parent: OwnedFd,
}

impl Scratch {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let parent = OsFs.open_dir(dir.path()).unwrap();
        Self { dir, parent }
    }

    pub(crate) fn with(tree: &Tree) -> Self {
        let scratch = Self::new();
        scratch.publish_cleanly(tree);
        scratch
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn publish(&self, tree: &Tree) -> Result<Published, PublishError> {
        self.publish_with(tree, &Options::default())
    }

    pub(crate) fn publish_with(
        &self,
        tree: &Tree,
        options: &Options,
    ) -> Result<Published, PublishError> {
        atomicdir::publish(&OsFs, &self.parent, target(), tree, options)
    }

    /// Publishes and leaves nothing behind; says whether there was a target before.
    pub(crate) fn publish_cleanly(&self, tree: &Tree) -> bool {
        let published = self.publish(tree).unwrap();
        assert!(published.cleanup_errors.is_empty(), "{published:?}");
        assert_eq!(self.live().as_ref(), Some(tree));
        assert_eq!(self.beside(), Vec::<String>::new());
        published.replaced
    }

    /// The tree that readers see; `None` if there is none.
    pub(crate) fn live(&self) -> Option<Tree> {
        match OsFs.open_dir(&self.path(TARGET)) {
            Ok(dir) => Some(Tree::load(&OsFs, &dir).unwrap()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// Every name beside the target.
    pub(crate) fn beside(&self) -> Vec<String> {
        let names = OsFs.read_dir(&self.parent).unwrap().into_iter();
        let mut names: Vec<String> = names
            .map(|entry| entry.name.into_string().unwrap())
            .filter(|name| name != TARGET)
            .collect();
        names.sort();
        names
    }

    /// What a writer leaves that died with half a tree written.
    pub(crate) fn leave_behind(&self, token: u64) -> String {
        let name = format!(".{TARGET}.atomicdir-{token:016x}");
        std::fs::create_dir(self.path(&name)).unwrap();
        std::fs::write(self.path(&name).join("stale"), "stale").unwrap();
        name
    }
}
