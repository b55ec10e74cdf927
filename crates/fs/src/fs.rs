//! The calls themselves: [`Fs`].

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;

use rustix::fs::{FlockOperation, OFlags};

use crate::stat::{FileKind, Stat};

/// How a rename treats an existing destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RenameMode {
    /// Replaces it, as plain `rename` does.
    Replace,
    /// `RENAME_NOREPLACE`: fails with `EEXIST`.
    NoReplace,
    /// `RENAME_EXCHANGE`: swaps the two names atomically; both must exist.
    Exchange,
}

impl fmt::Display for RenameMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Replace => "REPLACE",
            Self::NoReplace => "NOREPLACE",
            Self::Exchange => "EXCHANGE",
        })
    }
}

/// What `unlinkat` is asked to remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RemoveKind {
    /// Anything but a directory.
    File,
    /// An empty directory (`AT_REMOVEDIR`).
    Directory,
}

/// A name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirEntry {
    /// The name.
    pub name: OsString,
    /// Its type.
    pub kind: FileKind,
}

/// The system calls that a writer of directories needs, named after the syscalls.
///
/// Every name is a single component, relative to the directory descriptor beside it, and is
/// never followed if it is a symlink, except by [`openat`](Fs::openat) without `O_NOFOLLOW`.
/// Methods return what the call returned: short counts are short, errors carry the raw errno, and
/// nothing is retried. What a call promises is in its man page, section 2.
///
/// The trait is small enough to be wrapped (traced, broken at a given call) and to be modelled
/// in memory. A descriptor closes when it is dropped; closing reports nothing, so whoever cares
/// for the data calls [`fsync`](Fs::fsync) first.
pub trait Fs {
    /// An open file or directory.
    type Fd;

    /// Opens `name`. Mutating if `flags` has `CREATE` or `TRUNC`; `mode` counts only when a file
    /// is created, and is cut by the umask.
    ///
    /// # Errors
    /// As openat(2).
    fn openat(
        &self,
        dir: &Self::Fd,
        name: &OsStr,
        flags: OFlags,
        mode: u32,
    ) -> io::Result<Self::Fd>;

    /// Creates a directory; `mode` is cut by the umask.
    ///
    /// # Errors
    /// As mkdir(2); `EEXIST` if the name is taken by anything.
    fn mkdirat(&self, dir: &Self::Fd, name: &OsStr, mode: u32) -> io::Result<()>;

    /// Reads at the descriptor's position; 0 means the end.
    ///
    /// # Errors
    /// As read(2).
    fn read(&self, fd: &Self::Fd, buffer: &mut [u8]) -> io::Result<usize>;

    /// Writes at the descriptor's position and says how many bytes were taken, which may be
    /// fewer than were given.
    ///
    /// # Errors
    /// As write(2).
    fn write(&self, fd: &Self::Fd, bytes: &[u8]) -> io::Result<usize>;

    /// Writes at `offset` and says how many bytes were taken, which may be fewer than were
    /// given.
    ///
    /// # Errors
    /// As pwrite(2).
    fn pwrite(&self, fd: &Self::Fd, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// Sets the size.
    ///
    /// # Errors
    /// As ftruncate(2).
    fn ftruncate(&self, fd: &Self::Fd, size: u64) -> io::Result<()>;

    /// Sets the permission bits exactly, whatever the umask.
    ///
    /// # Errors
    /// As fchmod(2).
    fn fchmod(&self, fd: &Self::Fd, mode: u32) -> io::Result<()>;

    /// Sets owner and group; `None` leaves one as it is.
    ///
    /// # Errors
    /// As fchown(2).
    fn fchown(&self, fd: &Self::Fd, uid: Option<u32>, gid: Option<u32>) -> io::Result<()>;

    /// Sets an extended attribute, new or not.
    ///
    /// # Errors
    /// As setxattr(2).
    fn fsetxattr(&self, fd: &Self::Fd, attribute: &OsStr, value: &[u8]) -> io::Result<()>;

    /// Creates the symlink `name` with the text `target`.
    ///
    /// # Errors
    /// As symlink(2).
    fn symlinkat(&self, target: &OsStr, dir: &Self::Fd, name: &OsStr) -> io::Result<()>;

    /// Creates a hard link.
    ///
    /// # Errors
    /// As link(2).
    fn linkat(
        &self,
        old_dir: &Self::Fd,
        old_name: &OsStr,
        new_dir: &Self::Fd,
        new_name: &OsStr,
    ) -> io::Result<()>;

    /// Renames or exchanges.
    ///
    /// # Errors
    /// As renameat2(2); `EINVAL` or `ENOSYS` where the file system or the system lacks the mode.
    fn renameat2(
        &self,
        old_dir: &Self::Fd,
        old_name: &OsStr,
        new_dir: &Self::Fd,
        new_name: &OsStr,
        mode: RenameMode,
    ) -> io::Result<()>;

    /// Removes a name.
    ///
    /// # Errors
    /// As unlink(2) and rmdir(2).
    fn unlinkat(&self, dir: &Self::Fd, name: &OsStr, kind: RemoveKind) -> io::Result<()>;

    /// Starts write-back of all dirty pages of a file and does not wait (`sync_file_range` with
    /// `SYNC_FILE_RANGE_WRITE`). Makes nothing durable: it only lets a later fsync find the work
    /// under way.
    ///
    /// # Errors
    /// As `sync_file_range(2)`; `ENOSYS` on other systems.
    fn sync_file_range(&self, fd: &Self::Fd) -> io::Result<()>;

    /// Makes a file's content and what is needed to read it durable.
    ///
    /// # Errors
    /// As fdatasync(2). An error means that the content must be written anew: a second call may
    /// succeed without anything having reached the disk.
    fn fdatasync(&self, fd: &Self::Fd) -> io::Result<()>;

    /// Makes a file or a directory durable.
    ///
    /// # Errors
    /// As fsync(2), and see [`fdatasync`](Fs::fdatasync).
    fn fsync(&self, fd: &Self::Fd) -> io::Result<()>;

    /// Makes the whole file system that holds `fd` durable.
    ///
    /// # Errors
    /// As syncfs(2); before Linux 5.8 a failed write-back is not reported. `ENOSYS` on other
    /// systems.
    fn syncfs(&self, fd: &Self::Fd) -> io::Result<()>;

    /// Says what the descriptor is.
    ///
    /// # Errors
    /// As statx(2).
    fn fstat(&self, fd: &Self::Fd) -> io::Result<Stat>;

    /// Says what `name` is, without following a symlink and without triggering an automount.
    ///
    /// # Errors
    /// As statx(2).
    fn fstatat(&self, dir: &Self::Fd, name: &OsStr) -> io::Result<Stat>;

    /// Reads a symlink's text.
    ///
    /// # Errors
    /// As readlink(2).
    fn readlinkat(&self, dir: &Self::Fd, name: &OsStr) -> io::Result<OsString>;

    /// Lists a directory from its beginning, in no particular order, without `.` and `..`.
    ///
    /// # Errors
    /// As getdents(2).
    fn read_dir(&self, dir: &Self::Fd) -> io::Result<Vec<DirEntry>>;

    /// Takes or drops the advisory lock of the open file description. It changes nothing on the
    /// disk and dies with the last descriptor.
    ///
    /// # Errors
    /// As flock(2); `EWOULDBLOCK` if a non-blocking request would have to wait.
    fn flock(&self, fd: &Self::Fd, operation: FlockOperation) -> io::Result<()>;
}
