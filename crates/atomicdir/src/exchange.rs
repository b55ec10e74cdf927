//! The one step that readers see: staging becomes the target.

use std::ffi::OsStr;
use std::path::Path;

use rustix::io::Errno;
use untorn_fs::{FileKind, FlockOperation, Fs, Identity, RenameMode, Stat};

use crate::call::{CallError, InCall, is_one_of};
use crate::error::{Reason, TargetError};
use crate::staging::{Staging, identity_of};
use crate::write::OPEN_DIR;

/// How often the target may change between the look at it and the exchange.
const LOOKS_MAX: u32 = 8;

/// How the exchange ended, when it took place.
pub(crate) enum Exchanged<F: Fs> {
    /// The target was missing; the staging name is free again.
    Created,
    /// There was a target, and it has the staging name now.
    Replaced {
        /// Keeps the lock on the old directory, so that no sweeper takes it too early. `None` if
        /// it could not be locked; the sweeper's own fsync then stands between.
        _old: Option<F::Fd>,
    },
}

/// Why it did not, or may not have.
pub(crate) enum ExchangeError {
    /// The target is untouched.
    NotMade(Reason),
    /// An error was reported, and what happened could not be seen.
    Unknown {
        source: CallError,
        old_may_have_staging_name: bool,
    },
}

impl<E: Into<Reason>> From<E> for ExchangeError {
    fn from(error: E) -> Self {
        Self::NotMade(error.into())
    }
}

/// Looks at the target: `None` if it is missing, an error if it is not one to exchange.
///
/// With both names in one directory, two different single components, the exchange cannot meet
/// an ancestor of itself. What is left to refuse is the target's type and a mount on it.
pub(crate) fn look<F: Fs>(fs: &F, parent: &F::Fd, target: &OsStr) -> Result<Option<Stat>, Reason> {
    let stat = match fs.fstatat(parent, target) {
        Err(error) if is_one_of(&error, &[Errno::NOENT]) => return Ok(None),
        result => result.in_call("statx", Path::new(target))?,
    };
    match stat.kind {
        FileKind::Directory => {}
        FileKind::Symlink => return Err(TargetError::Symlink.into()),
        kind @ (FileKind::Regular | FileKind::Special) => {
            return Err(TargetError::NotADirectory(kind).into());
        }
    }
    let of_parent = fs.fstat(parent).in_call("statx", Path::new("."))?;
    let other_mount = match (stat.mount_id, of_parent.mount_id) {
        (Some(of_target), Some(of_parent)) => of_target != of_parent,
        (Some(_) | None, _) => stat.dev != of_parent.dev,
    };
    if other_mount || stat.mount_root == Some(true) {
        return Err(TargetError::MountPoint.into());
    }
    Ok(Some(stat))
}

/// Makes staging the target, once.
///
/// Whatever error a call reports, identities decide whether it took place, and only a call that
/// did not is made again. A second exchange after one that did would put the old tree back, to
/// be followed by the removal of the new one.
pub(crate) fn exchange<F: Fs>(
    fs: &F,
    parent: &F::Fd,
    target: &OsStr,
    staging: &Staging<F>,
) -> Result<Exchanged<F>, ExchangeError> {
    for _ in 0..LOOKS_MAX {
        let (mode, old) = match look(fs, parent, target)? {
            None => (RenameMode::NoReplace, None),
            Some(stat) => match lock_live(fs, parent, target, &stat)? {
                Some(live) => (RenameMode::Exchange, Some(live)),
                None => continue,
            },
        };
        let result = fs.renameat2(parent, &staging.name, parent, target, mode);
        let old_identity = old.as_ref().map(|live| live.identity);
        let error = match result {
            Ok(()) => return Ok(exchanged(old)),
            Err(error) => error,
        };
        match took_place(fs, parent, target, staging, old_identity) {
            Some(true) => return Ok(exchanged(old)),
            Some(false) => {}
            None => {
                let source = CallError {
                    call: "renameat2",
                    path: target.into(),
                    source: error,
                };
                return Err(ExchangeError::Unknown {
                    source,
                    old_may_have_staging_name: old.is_some(),
                });
            }
        }
        // The target appeared, vanished, or a signal came: look again.
        let changed = [Errno::EXIST, Errno::NOENT, Errno::INTR];
        if !is_one_of(&error, &changed) {
            return Err(ExchangeError::NotMade(not_made(error, target)));
        }
    }
    Err(ExchangeError::NotMade(Reason::Contended))
}

fn exchanged<F: Fs>(old: Option<Live<F>>) -> Exchanged<F> {
    match old {
        None => Exchanged::Created,
        Some(live) => Exchanged::Replaced { _old: live.lock },
    }
}

fn not_made(error: std::io::Error, target: &OsStr) -> Reason {
    if is_one_of(&error, &[Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP]) {
        Reason::Unsupported(error)
    } else if is_one_of(&error, &[Errno::XDEV]) {
        Reason::CrossDevice(error)
    } else {
        Reason::Call(CallError {
            call: "renameat2",
            path: target.into(),
            source: error,
        })
    }
}

/// Whether the exchange took place; `None` if that cannot be said.
///
/// The staging name is this writer's own, so what it holds decides. Where it holds neither the
/// staged directory nor the old one, the target is asked; and if that is not the staged directory
/// either, another writer has been there since, or a program that keeps no rules.
fn took_place<F: Fs>(
    fs: &F,
    parent: &F::Fd,
    target: &OsStr,
    staging: &Staging<F>,
    old: Option<Identity>,
) -> Option<bool> {
    let at_staging = identity_of(fs, parent, &staging.name).ok()?;
    if at_staging == Some(staging.identity) {
        return Some(false);
    }
    if old.is_some() && at_staging == old {
        return Some(true);
    }
    let at_target = identity_of(fs, parent, target).ok()?;
    (at_target == Some(staging.identity)).then_some(true)
}

/// The live directory, before the exchange.
struct Live<F: Fs> {
    identity: Identity,
    lock: Option<F::Fd>,
}

/// Locks the live directory; `None` if the target has changed meanwhile.
fn lock_live<F: Fs>(
    fs: &F,
    parent: &F::Fd,
    target: &OsStr,
    stat: &Stat,
) -> Result<Option<Live<F>>, CallError> {
    let path = Path::new(target);
    let dir = match fs.openat(parent, target, OPEN_DIR, 0) {
        Ok(dir) => dir,
        Err(error) if is_one_of(&error, &[Errno::NOENT, Errno::NOTDIR, Errno::LOOP]) => {
            return Ok(None);
        }
        // A writer may exchange a directory that it may not read.
        Err(error) if is_one_of(&error, &[Errno::ACCESS]) => {
            return Ok(Some(Live {
                identity: stat.identity(),
                lock: None,
            }));
        }
        Err(source) => {
            return Err(CallError {
                call: "openat",
                path: path.to_owned(),
                source,
            });
        }
    };
    let identity = fs.fstat(&dir).in_call("statx", path)?.identity();
    let lock = match fs.flock(&dir, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Some(dir),
        // Locked exclusively. If by a sweeper, the target has changed, as the next look will
        // show. If by a program with a use of its own for the lock, that keeps sweepers away too.
        Err(error) if is_one_of(&error, &[Errno::WOULDBLOCK]) => None,
        Err(source) => {
            return Err(CallError {
                call: "flock",
                path: path.to_owned(),
                source,
            });
        }
    };
    let unchanged = identity_of(fs, parent, target)? == Some(identity);
    Ok(unchanged.then_some(Live { identity, lock }))
}
