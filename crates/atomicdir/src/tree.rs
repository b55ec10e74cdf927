//! What is to be published: [`Tree`].

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::name::{NameError, check_entry};

/// A directory in memory.
///
/// Two trees are equal if names, types, contents, link texts and modes are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// The directory's own permission bits, set exactly.
    pub mode: u32,
    /// What is in it. The order is that of the names, so every run makes the same calls.
    pub entries: BTreeMap<OsString, Entry>,
}

/// Something in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A regular file.
    File {
        /// Its permission bits, set exactly.
        mode: u32,
        /// Its content.
        bytes: Vec<u8>,
    },
    /// A directory.
    Directory(Tree),
    /// A symbolic link.
    Symlink {
        /// Its text.
        target: OsString,
    },
}

impl Tree {
    /// An empty directory.
    pub fn new(mode: u32) -> Self {
        Self {
            mode,
            entries: BTreeMap::new(),
        }
    }

    /// Adds a file, in place of an entry of the same name.
    pub fn file(
        &mut self,
        name: impl Into<OsString>,
        mode: u32,
        bytes: impl Into<Vec<u8>>,
    ) -> &mut Self {
        self.insert(
            name,
            Entry::File {
                mode,
                bytes: bytes.into(),
            },
        )
    }

    /// Adds a directory, in place of an entry of the same name.
    pub fn directory(&mut self, name: impl Into<OsString>, tree: Tree) -> &mut Self {
        self.insert(name, Entry::Directory(tree))
    }

    /// Adds a symlink, in place of an entry of the same name.
    pub fn symlink(&mut self, name: impl Into<OsString>, target: impl Into<OsString>) -> &mut Self {
        self.insert(
            name,
            Entry::Symlink {
                target: target.into(),
            },
        )
    }

    fn insert(&mut self, name: impl Into<OsString>, entry: Entry) -> &mut Self {
        self.entries.insert(name.into(), entry);
        self
    }

    /// Checks all that can be known wrong before anything is written.
    pub(crate) fn check(&self) -> Result<(), TreeError> {
        self.check_under(Path::new(""))
    }

    fn check_under(&self, dir: &Path) -> Result<(), TreeError> {
        let refuse = |path: &Path, problem| {
            Err(TreeError {
                path: path.to_owned(),
                problem,
            })
        };
        if !is_mode(self.mode) {
            return refuse(dir, TreeProblem::Mode(self.mode));
        }
        for (name, entry) in &self.entries {
            if let Err(error) = check_entry(name) {
                // Joined as text: joining an absolute name as a path would replace the path.
                let mut path = dir.as_os_str().to_owned();
                path.push("/");
                path.push(name);
                return refuse(Path::new(&path), TreeProblem::Name(error));
            }
            let path = dir.join(name);
            match entry {
                Entry::File { mode, .. } if !is_mode(*mode) => {
                    return refuse(&path, TreeProblem::Mode(*mode));
                }
                Entry::Symlink { target } if !is_link_text(target) => {
                    return refuse(&path, TreeProblem::LinkText);
                }
                Entry::Directory(tree) => tree.check_under(&path)?,
                Entry::File { .. } | Entry::Symlink { .. } => {}
            }
        }
        Ok(())
    }
}

fn is_mode(mode: u32) -> bool {
    mode & !0o7777 == 0
}

/// `PATH_MAX` is 4096 with the zero byte at the end.
fn is_link_text(text: &OsStr) -> bool {
    let bytes = text.as_encoded_bytes();
    !bytes.is_empty() && bytes.len() < 4096 && !bytes.contains(&0)
}

/// An entry that cannot be published.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("entry {:?}: {problem}", .path)]
pub struct TreeError {
    /// Where in the tree; empty for the tree itself.
    pub path: PathBuf,
    /// What is wrong.
    pub problem: TreeProblem,
}

/// Why an entry cannot be published.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TreeProblem {
    /// Its name is refused.
    #[error("{0}")]
    Name(NameError),
    /// Its mode has other bits than permissions.
    #[error("mode {0:#o} is not between 0 and 0o7777")]
    Mode(u32),
    /// Its link text is empty, longer than 4095 bytes or has a zero byte.
    #[error("the symlink's text is empty, too long or has a zero byte")]
    LinkText,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_entry_is_found_at_any_depth() {
        let mut inner = Tree::new(0o755);
        inner.file("a/b", 0o644, "");
        let mut tree = Tree::new(0o755);
        tree.file("fine", 0o644, "").directory("sub", inner);
        let error = tree.check().unwrap_err();
        assert_eq!(error.path, Path::new("sub/a/b"));
        assert_eq!(error.problem, TreeProblem::Name(NameError::Slash));
    }

    #[test]
    fn modes_and_link_texts_are_checked() {
        assert_eq!(
            Tree::new(0o100_644).check().unwrap_err().problem,
            TreeProblem::Mode(0o100_644)
        );
        let mut tree = Tree::new(0o755);
        tree.file("f", 0o10_000, "");
        assert_eq!(
            tree.check().unwrap_err().problem,
            TreeProblem::Mode(0o10_000)
        );
        let mut tree = Tree::new(0o755);
        tree.symlink("s", "");
        assert_eq!(tree.check().unwrap_err().problem, TreeProblem::LinkText);
    }
}
