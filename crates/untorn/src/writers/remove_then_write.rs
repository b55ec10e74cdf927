//! Wrong: a file is removed, then written anew under its name.
//!
//! What library-go's installer has done with manifests since 2021-05 (#1075), so that the kubelet's
//! watcher sees a file created and not one modified. The file and its directory are fsynced at the
//! end, which is too late.
//!
//! To be seen: the file missing, or empty.

use std::io;

use untorn_fs::{Fs, RemoveKind};

use super::Job;
use super::error::{InCall, WriteError};
use super::steps::{LiveFile, Sync, for_each_live_file, write_file};

/// Per file: removes it, writes it, fsyncs it and its directory.
pub(super) fn publish<F: Fs>(job: &Job<'_, F>) -> Result<(), WriteError> {
    for_each_live_file(job, Sync::Yes, |file| {
        let LiveFile {
            dir,
            dir_path,
            name,
            mode,
            bytes,
        } = file;
        let path = dir_path.join(name);
        match job.fs.unlinkat(dir, name, RemoveKind::File) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            removed => removed.in_call("unlinkat", &path)?,
        }
        write_file(job.fs, dir, name, mode, bytes, &path, Sync::Yes)?;
        Sync::Yes.apply(job.fs, dir, dir_path)
    })
}
