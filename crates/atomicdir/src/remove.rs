//! Removes a tree that no reader is sent to any more.

use std::ffi::OsStr;
use std::path::Path;

use rustix::io::Errno;
use untorn_fs::{FileKind, Fs, RemoveKind, Stat};

use crate::call::{CallError, InCall, is_one_of};
use crate::write::OPEN_DIR;

/// Removes `name` from `parent`, with everything in it. What is gone already is no error: another
/// writer may be removing the same tree. Nothing is fsynced: after a power cut the tree may be
/// back in part, under its staging name, for the next sweep.
pub(crate) fn remove_tree<F: Fs>(fs: &F, parent: &F::Fd, name: &OsStr) -> Result<(), CallError> {
    let home = fs.fstat(parent).in_call("statx", Path::new("."))?;
    remove(fs, parent, name, Path::new(name), &home)
}

fn remove<F: Fs>(
    fs: &F,
    dir: &F::Fd,
    name: &OsStr,
    path: &Path,
    home: &Stat,
) -> Result<(), CallError> {
    let inner = match fs.openat(dir, name, OPEN_DIR, 0) {
        Err(error) if is_one_of(&error, &[Errno::NOENT]) => return Ok(()),
        Err(error) if is_one_of(&error, &[Errno::NOTDIR, Errno::LOOP]) => {
            return unlink(fs, dir, name, path, RemoveKind::File);
        }
        result => result.in_call("openat", path)?,
    };
    let stat = fs.fstat(&inner).in_call("statx", path)?;
    // Something may be mounted inside the old tree; what is mounted is not ours to delete.
    if stat.dev != home.dev || stat.mount_id != home.mount_id {
        return Err(Errno::XDEV.into()).in_call("openat", path);
    }
    let mut entries = fs.read_dir(&inner).in_call("getdents64", path)?;
    // In the order of names, so that the same tree is removed by the same calls.
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    // A tree may have been published with directories that even their owner cannot change.
    if !entries.is_empty() && stat.mode & 0o300 != 0o300 {
        fs.fchmod(&inner, stat.mode | 0o700)
            .in_call("fchmod", path)?;
    }
    for entry in entries {
        let path = path.join(&entry.name);
        match entry.kind {
            FileKind::Directory => remove(fs, &inner, &entry.name, &path, home)?,
            FileKind::Regular | FileKind::Symlink | FileKind::Special => {
                unlink(fs, &inner, &entry.name, &path, RemoveKind::File)?;
            }
        }
    }
    unlink(fs, dir, name, path, RemoveKind::Directory)
}

fn unlink<F: Fs>(
    fs: &F,
    dir: &F::Fd,
    name: &OsStr,
    path: &Path,
    kind: RemoveKind,
) -> Result<(), CallError> {
    match fs.unlinkat(dir, name, kind) {
        Err(error) if is_one_of(&error, &[Errno::NOENT]) => Ok(()),
        result => result.in_call("unlinkat", path),
    }
}
