//! Wrong: two plain renames through a third name in place of an exchange.
//!
//! The usual fallback where the exchange is not supported; a draft of library-go's swap had it for
//! other systems than Linux. Everything is synced, and no sync can help: between the two renames
//! there is no target.
//!
//! To be seen: the target missing.

use std::path::Path;

use untorn_fs::{Fs, RenameMode};

use super::Job;
use super::error::{InCall, WriteError};
use super::steps::{Sync, beside, exists, remove_tree, stage};

/// Stages and syncs, renames the old tree aside and the new one into its place, fsyncs the parent,
/// removes the old tree.
pub(super) fn publish<F: Fs>(job: &Job<'_, F>) -> Result<(), WriteError> {
    let Job {
        fs, parent, target, ..
    } = *job;
    let aside = beside(target, ".aside");
    let aside_path = Path::new(&aside);
    let staging = stage(job, Sync::Yes)?;
    if exists(fs, parent, target)? {
        // Left by a dead writer, and of no use while there is a target.
        if exists(fs, parent, &aside)? {
            remove_tree(fs, parent, &aside, aside_path)?;
        }
        fs.renameat2(parent, target, parent, &aside, RenameMode::Replace)
            .in_call("renameat2", Path::new(target))?;
    }
    fs.renameat2(parent, &staging, parent, target, RenameMode::Replace)
        .in_call("renameat2", Path::new(&staging))?;
    Sync::Yes.apply(fs, parent, Path::new("."))?;
    if exists(fs, parent, &aside)? {
        remove_tree(fs, parent, &aside, aside_path)?;
    }
    Ok(())
}
