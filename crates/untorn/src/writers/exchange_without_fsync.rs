//! Wrong: an exchange without any fsync.
//!
//! The mistake of library-go from 2025-11 to 2026-05 (before #2176), and of whoever takes the
//! exchange for a barrier; Kubernetes' `AtomicWriter` has the same order, with a symlink. The
//! journal commits the exchange while the data of the new files is not written yet.
//!
//! To be seen: the new names with empty files.

use std::path::Path;

use untorn_fs::{Fs, RenameMode};

use super::Job;
use super::error::{InCall, WriteError};
use super::steps::{Sync, ensure_target, remove_tree, stage};

/// Stages, exchanges, removes the old tree.
pub(super) fn publish<F: Fs>(job: &Job<'_, F>) -> Result<(), WriteError> {
    ensure_target(job)?;
    let staging = stage(job, Sync::No)?;
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
