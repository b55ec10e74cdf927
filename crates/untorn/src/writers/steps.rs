//! The steps that several writers share.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;

use atomicdir::{Entry, Tree};
use untorn_fs::{FileKind, Fs, OFlags, RemoveKind};

use super::Job;
use super::error::{InCall, WriteError};

/// Whether a writer syncs what it has written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sync {
    Yes,
    No,
}

impl Sync {
    /// Fsyncs, or does not.
    pub(super) fn apply<F: Fs>(self, fs: &F, fd: &F::Fd, path: &Path) -> Result<(), WriteError> {
        match self {
            Self::Yes => fs.fsync(fd).in_call("fsync", path),
            Self::No => Ok(()),
        }
    }
}

/// Flags that open a directory and nothing else.
const OPEN_DIR: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW);

/// Mode of what is not finished.
const UNFINISHED_DIR_MODE: u32 = 0o700;
const UNFINISHED_FILE_MODE: u32 = 0o600;

/// A name beside the target: `.live.staging`.
pub(super) fn beside(target: &OsStr, suffix: &str) -> OsString {
    let mut name = OsString::from(".");
    name.push(target);
    name.push(suffix);
    name
}

/// Whether there is something of that name.
pub(super) fn exists<F: Fs>(fs: &F, dir: &F::Fd, name: &OsStr) -> Result<bool, WriteError> {
    match fs.fstatat(dir, name) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error).in_call("statx", Path::new(name)),
    }
}

/// Opens a directory, which is made first if it is missing, and sees to its mode.
pub(super) fn open_or_make_dir<F: Fs>(
    fs: &F,
    dir: &F::Fd,
    name: &OsStr,
    mode: u32,
    path: &Path,
) -> Result<F::Fd, WriteError> {
    if !exists(fs, dir, name)? {
        fs.mkdirat(dir, name, UNFINISHED_DIR_MODE)
            .in_call("mkdirat", path)?;
    }
    let inner = open_dir(fs, dir, name, path)?;
    if fs.fstat(&inner).in_call("statx", path)?.mode != mode {
        fs.fchmod(&inner, mode).in_call("fchmod", path)?;
    }
    Ok(inner)
}

fn open_dir<F: Fs>(fs: &F, dir: &F::Fd, name: &OsStr, path: &Path) -> Result<F::Fd, WriteError> {
    fs.openat(dir, name, OPEN_DIR, 0).in_call("openat", path)
}

/// Makes the target as an empty directory if it is missing, because only what exists can be
/// exchanged. For a moment it is there and empty, which library-go does as well.
pub(super) fn ensure_target<F: Fs>(job: &Job<'_, F>) -> Result<(), WriteError> {
    let path = Path::new(job.target);
    open_or_make_dir(job.fs, job.parent, job.target, job.tree.mode, path).map(drop)
}

/// Writes the new tree into a fresh directory beside the target, and syncs every file and
/// directory of it, or none. What a dead writer has left there is removed first.
pub(super) fn stage<F: Fs>(job: &Job<'_, F>, sync: Sync) -> Result<OsString, WriteError> {
    let staging = beside(job.target, ".staging");
    let path = Path::new(&staging);
    if exists(job.fs, job.parent, &staging)? {
        remove_tree(job.fs, job.parent, &staging, path)?;
    }
    job.fs
        .mkdirat(job.parent, &staging, UNFINISHED_DIR_MODE)
        .in_call("mkdirat", path)?;
    let dir = open_dir(job.fs, job.parent, &staging, path)?;
    fill(job.fs, &dir, job.tree, path, sync)?;
    Ok(staging)
}

fn fill<F: Fs>(
    fs: &F,
    dir: &F::Fd,
    tree: &Tree,
    path: &Path,
    sync: Sync,
) -> Result<(), WriteError> {
    for (name, entry) in &tree.entries {
        let path = path.join(name);
        match entry {
            Entry::File { mode, bytes } => {
                write_file(fs, dir, name, *mode, bytes, &path, sync)?;
            }
            Entry::Directory(tree) => {
                fs.mkdirat(dir, name, UNFINISHED_DIR_MODE)
                    .in_call("mkdirat", &path)?;
                let inner = open_dir(fs, dir, name, &path)?;
                fill(fs, &inner, tree, &path, sync)?;
            }
            Entry::Symlink { target } => {
                fs.symlinkat(target, dir, name)
                    .in_call("symlinkat", &path)?;
            }
        }
    }
    fs.fchmod(dir, tree.mode).in_call("fchmod", path)?;
    sync.apply(fs, dir, path)
}

/// Writes a file from its beginning, with exactly that mode; what is there is truncated.
pub(super) fn write_file<F: Fs>(
    fs: &F,
    dir: &F::Fd,
    name: &OsStr,
    mode: u32,
    bytes: &[u8],
    path: &Path,
    sync: Sync,
) -> Result<(), WriteError> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW;
    let file = fs
        .openat(dir, name, flags, UNFINISHED_FILE_MODE)
        .in_call("openat", path)?;
    let mut rest = bytes;
    while !rest.is_empty() {
        match fs.write(&file, rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()).in_call("write", path),
            Ok(taken) => rest = &rest[taken..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error).in_call("write", path),
        }
    }
    // By descriptor, because the umask cuts the mode of an open.
    fs.fchmod(&file, mode).in_call("fchmod", path)?;
    sync.apply(fs, &file, path)
}

/// Goes through the files of a tree in the live directory, one by one; directories that are
/// missing are made. Names that the new tree does not have stay, as library-go left them.
pub(super) fn for_each_live_file<F: Fs>(
    job: &Job<'_, F>,
    sync: Sync,
    write: impl Fn(LiveFile<'_, F>) -> Result<(), WriteError>,
) -> Result<(), WriteError> {
    let path = Path::new(job.target);
    let is_new = !exists(job.fs, job.parent, job.target)?;
    let live = open_or_make_dir(job.fs, job.parent, job.target, job.tree.mode, path)?;
    if is_new {
        sync.apply(job.fs, job.parent, Path::new("."))?;
    }
    walk_live(job.fs, &live, job.tree, path, sync, &write)
}

/// A file that is to be written in the live directory.
pub(super) struct LiveFile<'a, F: Fs> {
    /// The directory that holds it.
    pub(super) dir: &'a F::Fd,
    /// Path of that directory.
    pub(super) dir_path: &'a Path,
    /// Its name.
    pub(super) name: &'a OsStr,
    /// Its mode.
    pub(super) mode: u32,
    /// Its content.
    pub(super) bytes: &'a [u8],
}

fn walk_live<F: Fs>(
    fs: &F,
    dir: &F::Fd,
    tree: &Tree,
    dir_path: &Path,
    sync: Sync,
    write: &impl Fn(LiveFile<'_, F>) -> Result<(), WriteError>,
) -> Result<(), WriteError> {
    for (name, entry) in &tree.entries {
        let path = dir_path.join(name);
        match entry {
            Entry::File { mode, bytes } => write(LiveFile {
                dir,
                dir_path,
                name,
                mode: *mode,
                bytes,
            })?,
            Entry::Directory(tree) => {
                let is_new = !exists(fs, dir, name)?;
                let inner = open_or_make_dir(fs, dir, name, tree.mode, &path)?;
                if is_new {
                    sync.apply(fs, dir, dir_path)?;
                }
                walk_live(fs, &inner, tree, &path, sync, write)?;
            }
            // Scenarios have none, and the old writers knew none.
            Entry::Symlink { .. } => {
                return Err(io::ErrorKind::Unsupported.into()).in_call("symlinkat", &path);
            }
        }
    }
    Ok(())
}

/// Removes a tree, in the order of names, so that the same tree is removed by the same calls.
pub(super) fn remove_tree<F: Fs>(
    fs: &F,
    dir: &F::Fd,
    name: &OsStr,
    path: &Path,
) -> Result<(), WriteError> {
    let inner = open_dir(fs, dir, name, path)?;
    let mut entries = fs.read_dir(&inner).in_call("getdents64", path)?;
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    for entry in entries {
        let path = path.join(&entry.name);
        match entry.kind {
            FileKind::Directory => remove_tree(fs, &inner, &entry.name, &path)?,
            FileKind::Regular | FileKind::Symlink | FileKind::Special => fs
                .unlinkat(&inner, &entry.name, RemoveKind::File)
                .in_call("unlinkat", &path)?,
        }
    }
    fs.unlinkat(dir, name, RemoveKind::Directory)
        .in_call("unlinkat", path)
}
