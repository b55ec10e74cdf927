//! Fills a staging directory and makes it durable.
//!
//! Two passes. The first writes the content; directories stay writable by their owner meanwhile,
//! whatever mode they are to get. The second goes from the leaves up, sets the directories' modes
//! and makes them durable, so that a directory is synced after everything in it.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use untorn_fs::{Fs, OFlags};

use crate::call::{CallError, InCall, is_one_of, uninterrupted};
use crate::options::Durability;
use crate::tree::{Entry, Tree};

/// The mode of a file or directory that is not finished: nobody but the owner looks inside.
pub(crate) const UNFINISHED_DIR_MODE: u32 = 0o700;
const UNFINISHED_FILE_MODE: u32 = 0o600;

/// How many files are kept open until they are synced. Keeping them open makes sure that a write
/// error is reported to this writer and not to whoever opens the file next; the bound keeps the
/// writer far from the usual limit of 1024 descriptors.
const OPEN_FILES_MAX: usize = 128;

/// Opens a directory and nothing else, not even through a symlink.
pub(crate) const OPEN_DIR: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Writes `tree` into the empty directory `dir` and makes all of it durable, `dir` included.
/// The name of `dir` in its parent is not made durable.
pub(crate) fn write_durably<F: Fs>(
    fs: &F,
    dir: &F::Fd,
    tree: &Tree,
    path: &Path,
    durability: Durability,
) -> Result<(), CallError> {
    let mut unsynced = Unsynced {
        fs,
        durability,
        files: Vec::new(),
    };
    write_content(fs, dir, tree, path, &mut unsynced)?;
    unsynced.sync_all()?;
    finish_directories(fs, dir, tree, path, durability)?;
    match durability {
        Durability::Fsync => Ok(()),
        Durability::Syncfs => fs.syncfs(dir).in_call("syncfs", path),
    }
}

fn write_content<F: Fs>(
    fs: &F,
    dir: &F::Fd,
    tree: &Tree,
    dir_path: &Path,
    unsynced: &mut Unsynced<'_, F>,
) -> Result<(), CallError> {
    for (name, entry) in &tree.entries {
        let path = dir_path.join(name);
        match entry {
            Entry::File { mode, bytes } => {
                let file = write_file(fs, dir, name, *mode, bytes, &path)?;
                unsynced.add(file, path)?;
            }
            Entry::Directory(tree) => {
                fs.mkdirat(dir, name, UNFINISHED_DIR_MODE)
                    .in_call("mkdirat", &path)?;
                let inner = fs.openat(dir, name, OPEN_DIR, 0).in_call("openat", &path)?;
                write_content(fs, &inner, tree, &path, unsynced)?;
            }
            Entry::Symlink { target } => {
                fs.symlinkat(target, dir, name)
                    .in_call("symlinkat", &path)?;
            }
        }
    }
    Ok(())
}

fn write_file<F: Fs>(
    fs: &F,
    dir: &F::Fd,
    name: &OsStr,
    mode: u32,
    bytes: &[u8],
    path: &Path,
) -> Result<F::Fd, CallError> {
    // Exclusive: in a fresh staging directory an existing name would be somebody else's.
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = fs
        .openat(dir, name, flags, UNFINISHED_FILE_MODE)
        .in_call("openat", path)?;
    let mut rest = bytes;
    while !rest.is_empty() {
        let taken = match uninterrupted(|| fs.write(&file, rest)) {
            Ok(0) => Err(io::ErrorKind::WriteZero.into()),
            result => result,
        };
        rest = &rest[taken.in_call("write", path)?..];
    }
    // After the content, because a write clears set-id bits; by descriptor, because the umask
    // cuts the mode of an open.
    fs.fchmod(&file, mode).in_call("fchmod", path)?;
    Ok(file)
}

fn finish_directories<F: Fs>(
    fs: &F,
    dir: &F::Fd,
    tree: &Tree,
    dir_path: &Path,
    durability: Durability,
) -> Result<(), CallError> {
    for (name, entry) in &tree.entries {
        if let Entry::Directory(tree) = entry {
            let path = dir_path.join(name);
            let inner = fs.openat(dir, name, OPEN_DIR, 0).in_call("openat", &path)?;
            finish_directories(fs, &inner, tree, &path, durability)?;
        }
    }
    fs.fchmod(dir, tree.mode).in_call("fchmod", dir_path)?;
    match durability {
        Durability::Fsync => fs.fsync(dir).in_call("fsync", dir_path),
        Durability::Syncfs => Ok(()),
    }
}

/// Files that are written and not yet synced.
struct Unsynced<'a, F: Fs> {
    fs: &'a F,
    durability: Durability,
    files: Vec<(F::Fd, PathBuf)>,
}

impl<F: Fs> Unsynced<'_, F> {
    fn add(&mut self, file: F::Fd, path: PathBuf) -> Result<(), CallError> {
        match self.durability {
            Durability::Fsync => {
                self.files.push((file, path));
                if self.files.len() < OPEN_FILES_MAX {
                    Ok(())
                } else {
                    self.sync_all()
                }
            }
            // syncfs hears of every file's errors, open or not.
            Durability::Syncfs => Ok(()),
        }
    }

    /// Starts write-back on all files before it waits for the first, so that the disk is busy
    /// with all of them at once: 10 ms instead of 26 ms for 100 files.
    fn sync_all(&mut self) -> Result<(), CallError> {
        for (file, path) in &self.files {
            match self.fs.sync_file_range(file) {
                // Only a hint, so a system without the call loses nothing but time.
                Err(error) if is_one_of(&error, &[rustix::io::Errno::NOSYS]) => {}
                result => result.in_call("sync_file_range", path)?,
            }
        }
        for (file, path) in &self.files {
            self.fs.fsync(file).in_call("fsync", path)?;
        }
        self.files.clear();
        Ok(())
    }
}
