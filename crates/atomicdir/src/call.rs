//! A call that failed, and on which path: [`CallError`].

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

/// A system call that failed.
#[derive(Debug, thiserror::Error)]
#[error("{call} {}: {source}", .path.display())]
pub struct CallError {
    /// The syscall's name.
    pub call: &'static str,
    /// What it was made on, relative to the parent directory of the target; `.` is the parent.
    pub path: PathBuf,
    /// What it returned.
    pub source: io::Error,
}

impl CallError {
    /// The error's number, if it has one.
    pub fn errno(&self) -> Option<i32> {
        self.source.raw_os_error()
    }
}

/// Names the call and the path of an error.
pub(crate) trait InCall<T> {
    fn in_call(self, call: &'static str, path: &Path) -> Result<T, CallError>;
}

impl<T> InCall<T> for io::Result<T> {
    fn in_call(self, call: &'static str, path: &Path) -> Result<T, CallError> {
        self.map_err(|source| CallError {
            call,
            path: path.to_owned(),
            source,
        })
    }
}

/// Whether an error is one of these.
pub(crate) fn is_one_of(error: &io::Error, numbers: &[Errno]) -> bool {
    Errno::from_io_error(error).is_some_and(|number| numbers.contains(&number))
}

/// Repeats a read or write that a signal interrupted before it did anything.
///
/// Never used for fsync: a repeated fsync that succeeds says nothing about what the first one
/// failed to write.
pub(crate) fn uninterrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}
