//! The staging directory of one writer: [`Staging`].
//!
//! The module documentation of the crate says who may remove one.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use rustix::io::Errno;
use untorn_fs::{FlockOperation, Fs, Identity, RemoveKind};

use crate::call::{CallError, InCall, is_one_of};
use crate::error::{CleanupError, Reason};
use crate::name::staging_name;
use crate::options::Options;
use crate::remove::remove_tree;
use crate::write::{OPEN_DIR, UNFINISHED_DIR_MODE};

/// With 64 random bits a second attempt is rare already.
const NAMES_TRIED_MAX: u64 = 16;

/// A directory that only this writer uses, until it becomes the target.
pub(crate) struct Staging<F: Fs> {
    /// Its name beside the target.
    pub(crate) name: OsString,
    /// Which directory it is, whatever it is called.
    pub(crate) identity: Identity,
    /// Open and locked, which keeps sweepers away and the inode number from being used again.
    pub(crate) dir: F::Fd,
}

impl<F: Fs> Staging<F> {
    /// Makes a fresh directory and locks it. On an error nothing is left of it, or
    /// `cleanup_errors` says what is.
    pub(crate) fn create(
        fs: &F,
        parent: &F::Fd,
        target: &OsStr,
        options: &Options,
        cleanup_errors: &mut Vec<CleanupError>,
    ) -> Result<Self, Reason> {
        for attempt in 0..NAMES_TRIED_MAX {
            let name = staging_name(target, options.token_for(attempt).map_err(Reason::Random)?);
            let claimed = match fs.mkdirat(parent, &name, UNFINISHED_DIR_MODE) {
                Ok(()) => Self::claim(fs, parent, &name),
                // A leftover, or another writer: either way not ours, so it is left alone.
                Err(error) if is_one_of(&error, &[Errno::EXIST]) => continue,
                Err(source) => Err(CallError {
                    call: "mkdirat",
                    path: name.clone().into(),
                    source,
                }),
            };
            match claimed {
                Ok(Some(staging)) => return Ok(staging),
                Ok(None) => {}
                Err(error) => {
                    cleanup_errors.extend(discard(fs, parent, name).err());
                    return Err(error.into());
                }
            }
        }
        Err(Reason::NoStagingName)
    }

    /// Opens and locks the new directory; `None` if a sweeper was faster.
    fn claim(fs: &F, parent: &F::Fd, name: &OsStr) -> Result<Option<Self>, CallError> {
        let path = Path::new(name);
        let dir = match fs.openat(parent, name, OPEN_DIR, 0) {
            Err(error) if is_one_of(&error, &[Errno::NOENT]) => return Ok(None),
            result => result.in_call("openat", path)?,
        };
        match fs.flock(&dir, FlockOperation::NonBlockingLockShared) {
            Err(error) if is_one_of(&error, &[Errno::WOULDBLOCK]) => return Ok(None),
            result => result.in_call("flock", path)?,
        }
        let identity = fs.fstat(&dir).in_call("statx", path)?.identity();
        match identity_of(fs, parent, name)? {
            Some(named) if named == identity => Ok(Some(Self {
                name: name.to_owned(),
                identity,
                dir,
            })),
            Some(_) | None => Ok(None),
        }
    }

    /// Removes the directory, if it still is what its name says.
    pub(crate) fn remove(&self, fs: &F, parent: &F::Fd) -> Result<(), CleanupError> {
        let removed = match identity_of(fs, parent, &self.name) {
            Ok(Some(named)) if named == self.identity => remove_tree(fs, parent, &self.name),
            // Not the directory that was made here, so it is not this writer's to remove.
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        };
        removed.map_err(|source| CleanupError {
            name: self.name.clone(),
            source,
        })
    }
}

/// Removes a staging directory that was made, or may have been, and could not be opened. Only an
/// empty directory can go this way, so nothing is lost should it be somebody else's.
fn discard<F: Fs>(fs: &F, parent: &F::Fd, name: OsString) -> Result<(), CleanupError> {
    let path = Path::new(&name);
    let result = match identity_of(fs, parent, &name) {
        Ok(None) => Ok(()),
        Ok(Some(_)) => fs
            .unlinkat(parent, &name, RemoveKind::Directory)
            .in_call("unlinkat", path),
        Err(error) => Err(error),
    };
    result.map_err(|source| CleanupError { name, source })
}

/// Which file has this name; `None` if none has.
pub(crate) fn identity_of<F: Fs>(
    fs: &F,
    dir: &F::Fd,
    name: &OsStr,
) -> Result<Option<Identity>, CallError> {
    match fs.fstatat(dir, name) {
        Ok(stat) => Ok(Some(stat.identity())),
        Err(error) if is_one_of(&error, &[Errno::NOENT]) => Ok(None),
        Err(source) => Err(CallError {
            call: "statx",
            path: name.into(),
            source,
        }),
    }
}
