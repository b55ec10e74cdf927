//! Removes what dead writers left: [`sweep`].

use std::ffi::{OsStr, OsString};
use std::path::Path;

use rustix::io::Errno;
use untorn_fs::{FileKind, FlockOperation, Fs};

use crate::call::{CallError, InCall, is_one_of};
use crate::error::{CleanupError, SweepError};
use crate::name::{check_target, is_staging_name};
use crate::remove::remove_tree;
use crate::staging::identity_of;
use crate::write::OPEN_DIR;

/// How many leftovers are locked, and so kept open, at a time. Each such batch costs one fsync.
const BATCH_MAX: usize = 128;

/// What a sweep did.
#[derive(Debug, Default)]
pub struct Swept {
    /// Leftovers that are gone.
    pub removed: Vec<OsString>,
    /// Staging directories of living writers, left alone.
    pub in_use: Vec<OsString>,
    /// Leftovers that could not be removed.
    pub failed: Vec<CleanupError>,
}

/// Removes the staging directories of `target` that no living writer holds.
///
/// A leftover may be the old tree of a writer that died between the exchange and the fsync of
/// the parent. So the parent is fsynced before anything is removed: from then on it is durable
/// that the leftover is not the target.
///
/// `parent` must be open for reading.
///
/// # Errors
/// If the name is refused, or if the parent could not be listed or fsynced, or a leftover could
/// not be looked at. What was removed before that stays removed; the target is untouched in any
/// case. A leftover that resists is no error here, but listed in [`Swept::failed`].
pub fn sweep<F: Fs>(fs: &F, parent: &F::Fd, target: &OsStr) -> Result<Swept, SweepError> {
    check_target(target)?;
    let mut leftovers: Vec<OsString> = fs
        .read_dir(parent)
        .in_call("getdents64", Path::new("."))?
        .into_iter()
        // A writer only ever makes directories; anything else of that name is a stranger's.
        .filter(|entry| entry.kind == FileKind::Directory && is_staging_name(target, &entry.name))
        .map(|entry| entry.name)
        .collect();
    leftovers.sort();

    let mut swept = Swept::default();
    for batch in leftovers.chunks(BATCH_MAX) {
        sweep_batch(fs, parent, batch, &mut swept)?;
    }
    Ok(swept)
}

fn sweep_batch<F: Fs>(
    fs: &F,
    parent: &F::Fd,
    names: &[OsString],
    swept: &mut Swept,
) -> Result<(), CallError> {
    let mut claimed = Vec::new();
    for name in names {
        match claim(fs, parent, name)? {
            Claim::Dead(lock) => claimed.push((name, lock)),
            Claim::InUse => swept.in_use.push(name.clone()),
            Claim::Gone => {}
        }
    }
    if claimed.is_empty() {
        return Ok(());
    }
    fs.fsync(parent).in_call("fsync", Path::new("."))?;
    for (name, _lock) in claimed {
        match remove_tree(fs, parent, name) {
            Ok(()) => swept.removed.push(name.clone()),
            Err(source) => swept.failed.push(CleanupError {
                name: name.clone(),
                source,
            }),
        }
    }
    Ok(())
}

enum Claim<T> {
    /// No living writer holds it. The descriptor keeps new ones from using it.
    Dead(T),
    InUse,
    Gone,
}

fn claim<F: Fs>(fs: &F, parent: &F::Fd, name: &OsStr) -> Result<Claim<F::Fd>, CallError> {
    let path = Path::new(name);
    let dir = match fs.openat(parent, name, OPEN_DIR, 0) {
        Err(error) if is_one_of(&error, &[Errno::NOENT, Errno::NOTDIR, Errno::LOOP]) => {
            return Ok(Claim::Gone);
        }
        result => result.in_call("openat", path)?,
    };
    match fs.flock(&dir, FlockOperation::NonBlockingLockExclusive) {
        Err(error) if is_one_of(&error, &[Errno::WOULDBLOCK]) => return Ok(Claim::InUse),
        result => result.in_call("flock", path)?,
    }
    // Between the open and the lock its writer may have published it and gone: then the name is
    // another directory's, and the one in hand is live.
    let identity = fs.fstat(&dir).in_call("statx", path)?.identity();
    match identity_of(fs, parent, name)? {
        Some(named) if named == identity => Ok(Claim::Dead(dir)),
        Some(_) | None => Ok(Claim::Gone),
    }
}
