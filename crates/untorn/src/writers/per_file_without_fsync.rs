//! Wrong: file by file, and nothing is synced.
//!
//! What library-go did from 2021-06 (#1103) to 2025-11 (#2009).
//!
//! To be seen: where a rename over a file has its data written out (ext4's `auto_da_alloc`), a new
//! certificate beside the old key; elsewhere an empty certificate.

use untorn_fs::Fs;

use super::Job;
use super::error::WriteError;
use super::per_file_fsync::replace_each;
use super::steps::Sync;

/// Replaces every file of the live directory.
pub(super) fn publish<F: Fs>(job: &Job<'_, F>) -> Result<(), WriteError> {
    replace_each(job, Sync::No)
}
