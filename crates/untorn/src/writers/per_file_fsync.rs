//! Wrong: file by file, each of them durably.
//!
//! The mistake of consul-template, the Vault agent and, with fewer syncs, of library-go before
//! #2009: what is right for one file is done to several that belong together.
//!
//! To be seen: a new certificate beside the old key, and temporary files in the live directory.

use std::ffi::{OsStr, OsString};

use untorn_fs::{Fs, RenameMode};

use super::Job;
use super::error::{InCall, WriteError};
use super::steps::{LiveFile, Sync, for_each_live_file, write_file};

/// Replaces every file of the live directory, and syncs each file and its directory.
pub(super) fn publish<F: Fs>(job: &Job<'_, F>) -> Result<(), WriteError> {
    replace_each(job, Sync::Yes)
}

/// Per file: temporary file, rename over the old one.
pub(super) fn replace_each<F: Fs>(job: &Job<'_, F>, sync: Sync) -> Result<(), WriteError> {
    for_each_live_file(job, sync, |file| {
        let LiveFile {
            dir,
            dir_path,
            name,
            mode,
            bytes,
        } = file;
        let temporary = temporary_name(name, job.seed);
        let path = dir_path.join(&temporary);
        write_file(job.fs, dir, &temporary, mode, bytes, &path, sync)?;
        job.fs
            .renameat2(dir, &temporary, dir, name, RenameMode::Replace)
            .in_call("renameat2", &path)?;
        sync.apply(job.fs, dir, dir_path)
    })
}

/// `tls.key.tmp0123456789`, as library-go named them. The number comes from the seed, so a second
/// run takes over what a dead first one left: leftovers are not what this writer is to show.
fn temporary_name(name: &OsStr, seed: u64) -> OsString {
    let mut temporary = name.to_owned();
    temporary.push(format!(".tmp{:010}", seed % 10_000_000_000));
    temporary
}
