//! Reads a directory into a [`Tree`].

use std::path::{Path, PathBuf};

use untorn_fs::{FileKind, Fs, OFlags};

use crate::call::{CallError, InCall, uninterrupted};
use crate::tree::{Entry, Tree};
use crate::write::OPEN_DIR;

/// Why a directory could not be read into a tree.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// It has something that a tree cannot hold.
    #[error("{} is a {kind}; only files, directories and symlinks can be published", .path.display())]
    Special {
        /// Where, relative to the directory.
        path: PathBuf,
        /// What it is.
        kind: FileKind,
    },
    /// A call failed; paths are relative to the directory.
    #[error(transparent)]
    Call(#[from] CallError),
}

impl Tree {
    /// Reads everything under `dir`: names, contents, modes and link texts. Owners, times and
    /// hard links between files are not kept.
    ///
    /// It takes one descriptor's view of each directory, but makes no promise about a directory
    /// that somebody changes meanwhile.
    ///
    /// # Errors
    /// If there is a device, socket or named pipe, or if something cannot be read.
    pub fn load<F: Fs>(fs: &F, dir: &F::Fd) -> Result<Self, LoadError> {
        load(fs, dir, Path::new(""))
    }
}

fn load<F: Fs>(fs: &F, dir: &F::Fd, dir_path: &Path) -> Result<Tree, LoadError> {
    let mut tree = Tree::new(fs.fstat(dir).in_call("statx", dir_path)?.mode);
    for found in fs.read_dir(dir).in_call("getdents64", dir_path)? {
        let name = found.name;
        let path = dir_path.join(&name);
        let entry = match found.kind {
            FileKind::Regular => {
                // Should the file have been replaced by a pipe meanwhile, this does not hang.
                let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
                let file = fs.openat(dir, &name, flags, 0).in_call("openat", &path)?;
                load_file(fs, &file, &path)?
            }
            FileKind::Directory => {
                let inner = fs
                    .openat(dir, &name, OPEN_DIR, 0)
                    .in_call("openat", &path)?;
                Entry::Directory(load(fs, &inner, &path)?)
            }
            FileKind::Symlink => Entry::Symlink {
                target: fs.readlinkat(dir, &name).in_call("readlinkat", &path)?,
            },
            kind @ FileKind::Special => return Err(LoadError::Special { path, kind }),
        };
        tree.entries.insert(name, entry);
    }
    Ok(tree)
}

fn load_file<F: Fs>(fs: &F, file: &F::Fd, path: &Path) -> Result<Entry, LoadError> {
    let stat = fs.fstat(file).in_call("statx", path)?;
    if stat.kind != FileKind::Regular {
        return Err(LoadError::Special {
            path: path.to_owned(),
            kind: stat.kind,
        });
    }
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match uninterrupted(|| fs.read(file, &mut buffer)).in_call("read", path)? {
            0 => {
                return Ok(Entry::File {
                    mode: stat.mode,
                    bytes,
                });
            }
            count => bytes.extend_from_slice(&buffer[..count]),
        }
    }
}
