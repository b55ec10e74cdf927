//! The whole of it, in order: [`publish`].

use std::ffi::{OsStr, OsString};
use std::path::Path;

use untorn_fs::Fs;

use crate::call::InCall;
use crate::error::{CleanupError, PublishError, Reason};
use crate::exchange::{ExchangeError, Exchanged, exchange, look};
use crate::name::check_target;
use crate::options::Options;
use crate::remove::remove_tree;
use crate::staging::Staging;
use crate::sweep::sweep;
use crate::tree::Tree;
use crate::write::write_durably;

/// The new tree is the target, and a power cut does not change that.
#[derive(Debug)]
#[must_use = "cleanup may have failed although the tree is published"]
pub struct Published {
    /// Whether there was a target before.
    pub replaced: bool,
    /// What could not be removed: the old tree, or leftovers of dead writers. The new tree is
    /// published and durable all the same. Watchers of files in the old tree learn of the change
    /// only by its removal, so they may not have noticed.
    pub cleanup_errors: Vec<CleanupError>,
}

/// Makes `tree` the directory `target` in `parent`, atomically and durably.
///
/// At any moment a reader of `target` finds all of the old tree or all of the new one; where
/// there was none, nothing or all of the new one. After a power cut it is the same, and once this
/// returns `Ok` it is the new one. Writers do not wait for each other: of several, each publishes
/// its tree whole, and the last one stays.
///
/// `parent` must be open for reading, because it is fsynced, and must not be an `O_PATH`
/// descriptor. The staging directory is made in it, so it needs write permission there and
/// nowhere else.
///
/// # Errors
/// * [`PublishError::NotPublished`]: the target is untouched. Refused names and targets are
///   found before anything is written.
/// * [`PublishError::DurabilityUnknown`]: the new tree is live, or may be, but a power cut may
///   return the old one.
pub fn publish<F: Fs>(
    fs: &F,
    parent: &F::Fd,
    target: &OsStr,
    tree: &Tree,
    options: &Options,
) -> Result<Published, PublishError> {
    let mut cleanup_errors = Vec::new();
    let staging = match stage(fs, parent, target, tree, options, &mut cleanup_errors) {
        Ok(staging) => staging,
        Err(reason) => {
            return Err(PublishError::NotPublished {
                reason,
                cleanup_errors,
            });
        }
    };

    let exchanged = match exchange(fs, parent, target, &staging) {
        Ok(exchanged) => exchanged,
        Err(ExchangeError::NotMade(reason)) => {
            cleanup_errors.extend(staging.remove(fs, parent).err());
            return Err(PublishError::NotPublished {
                reason,
                cleanup_errors,
            });
        }
        Err(ExchangeError::Unknown {
            source,
            old_may_have_staging_name,
        }) => {
            return Err(PublishError::DurabilityUnknown {
                seen_live: false,
                old_kept_at: old_may_have_staging_name.then(|| staging.name.clone()),
                source,
                cleanup_errors,
            });
        }
    };
    let replaced = match exchanged {
        Exchanged::Created => false,
        Exchanged::Replaced { .. } => true,
    };

    if let Err(source) = fs.fsync(parent).in_call("fsync", Path::new(".")) {
        return Err(PublishError::DurabilityUnknown {
            seen_live: true,
            old_kept_at: replaced.then(|| staging.name.clone()),
            source,
            cleanup_errors,
        });
    }

    if replaced {
        cleanup_errors.extend(remove_old(fs, parent, &staging.name).err());
    }
    // The locks on the old and the new directory end here, with `exchanged` and `staging`.
    Ok(Published {
        replaced,
        cleanup_errors,
    })
}

/// Everything before the exchange. On an error nothing of this writer is left, or
/// `cleanup_errors` says what is.
fn stage<F: Fs>(
    fs: &F,
    parent: &F::Fd,
    target: &OsStr,
    tree: &Tree,
    options: &Options,
    cleanup_errors: &mut Vec<CleanupError>,
) -> Result<Staging<F>, Reason> {
    check_target(target)?;
    tree.check()?;
    // Looked at again right before the exchange; here so that a wrong target costs nothing.
    look(fs, parent, target)?;
    if options.sweep {
        cleanup_errors.extend(sweep(fs, parent, target)?.failed);
    }
    let staging = Staging::create(fs, parent, target, options, cleanup_errors)?;
    let path = Path::new(&staging.name);
    match write_durably(fs, &staging.dir, tree, path, options.durability) {
        Ok(()) => Ok(staging),
        Err(error) => {
            cleanup_errors.extend(staging.remove(fs, parent).err());
            Err(error.into())
        }
    }
}

fn remove_old<F: Fs>(fs: &F, parent: &F::Fd, name: &OsString) -> Result<(), CleanupError> {
    remove_tree(fs, parent, name).map_err(|source| CleanupError {
        name: name.clone(),
        source,
    })
}
