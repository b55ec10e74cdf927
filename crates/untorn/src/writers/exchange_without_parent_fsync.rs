//! Wrong: everything is synced but the exchange itself.
//!
//! The mistake of renameio, moby/sys, containerd's continuity, git and, until its version 0.2.0,
//! atomic-write-file, carried over to the exchange: files are fsynced, the directory whose names
//! change is not. The new tree is complete whenever it is seen, and reported too early.
//!
//! To be seen: the old tree after success was reported.

use std::path::Path;

use untorn_fs::{Fs, RenameMode};

use super::Job;
use super::error::{InCall, WriteError};
use super::steps::{Sync, ensure_target, remove_tree, stage};

/// Stages and syncs, exchanges, removes the old tree.
pub(super) fn publish<F: Fs>(job: &Job<'_, F>) -> Result<(), WriteError> {
    ensure_target(job)?;
    let staging = stage(job, Sync::Yes)?;
    let path = Path::new(&staging);
    job.fs
        .renameat2(
            job.parent,
            &staging,
            job.parent,
            job.target,
            RenameMode::Exchange,
        )
        .in_call("renameat2", path)?;
    remove_tree(job.fs, job.parent, &staging, path)
}
