//! Why a writer did not publish.

use std::io;
use std::path::{Path, PathBuf};

/// Why a writer does not say that the tree is published and durable.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The sync core says so.
    #[error(transparent)]
    Atomicdir(#[from] atomicdir::PublishError),
    /// A call of another writer failed.
    #[error("{call} {}: {source}", .path.display())]
    Call {
        /// The syscall's name.
        call: &'static str,
        /// What it was made on, relative to the parent of the target; `.` is the parent.
        path: PathBuf,
        /// What it returned.
        source: io::Error,
    },
}

/// Names the call and the path of an error.
pub(super) trait InCall<T> {
    fn in_call(self, call: &'static str, path: &Path) -> Result<T, WriteError>;
}

impl<T> InCall<T> for io::Result<T> {
    fn in_call(self, call: &'static str, path: &Path) -> Result<T, WriteError> {
        self.map_err(|source| WriteError::Call {
            call,
            path: path.to_owned(),
            source,
        })
    }
}
