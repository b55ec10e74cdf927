//! A file system that fails at one call, or is raced at one lock: [`DisturbedFs`].

use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;

use untorn_fs::{DirEntry, FlockOperation, Fs, OFlags, OsFs, RemoveKind, RenameMode, Stat};

/// Whether the failing call does its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It does nothing and reports the error.
    Before,
    /// It does its work and reports the error all the same.
    After,
}

/// The real file system, but for one disturbance.
pub(crate) struct DisturbedFs<'a> {
    fault: Fault,
    errno: i32,
    /// How many mutating calls are made before the one that fails.
    left: Cell<Option<u32>>,
    /// How many locks are asked for before somebody else acts.
    locks_left: Cell<Option<u32>>,
    somebody_else: Box<dyn Fn() + 'a>,
}

impl<'a> DisturbedFs<'a> {
    /// Lets the mutating call of this index, from 0, fail.
    pub(crate) fn new(fault: Fault, index: u32, errno: i32) -> Self {
        let (left, locks_left) = (Cell::new(Some(index)), Cell::new(None));
        Self {
            fault,
            errno,
            left,
            locks_left,
            somebody_else: Box::new(|| ()),
        }
    }

    /// Lets somebody else act right before the lock of this index, from 0, is asked for.
    pub(crate) fn racing(lock: u32, somebody_else: impl Fn() + 'a) -> Self {
        let (left, locks_left) = (Cell::new(None), Cell::new(Some(lock)));
        let somebody_else = Box::new(somebody_else);
        Self {
            fault: Fault::Before,
            errno: 0,
            left,
            locks_left,
            somebody_else,
        }
    }

    /// Whether the race was run.
    pub(crate) fn has_raced(&self) -> bool {
        self.locks_left.get().is_none()
    }

    /// Whether the run was long enough to come to the failing call.
    pub(crate) fn has_failed(&self) -> bool {
        self.left.get().is_none()
    }

    fn mutate<T>(&self, call: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let is_the_one = self.left.get() == Some(0);
        self.left
            .set(self.left.get().and_then(|left| left.checked_sub(1)));
        if !is_the_one {
            return call();
        }
        if self.fault == Fault::After {
            drop(call()?);
        }
        Err(io::Error::from_raw_os_error(self.errno))
    }
}

impl Fs for DisturbedFs<'_> {
    type Fd = OwnedFd;

    fn openat(&self, dir: &OwnedFd, name: &OsStr, flags: OFlags, mode: u32) -> io::Result<OwnedFd> {
        let open = || OsFs.openat(dir, name, flags, mode);
        if flags.intersects(OFlags::CREATE | OFlags::TRUNC) {
            self.mutate(open)
        } else {
            open()
        }
    }

    fn mkdirat(&self, dir: &OwnedFd, name: &OsStr, mode: u32) -> io::Result<()> {
        self.mutate(|| OsFs.mkdirat(dir, name, mode))
    }

    fn read(&self, fd: &OwnedFd, buffer: &mut [u8]) -> io::Result<usize> {
        OsFs.read(fd, buffer)
    }

    /// Never takes more than 40,000 bytes, as a write may.
    fn write(&self, fd: &OwnedFd, bytes: &[u8]) -> io::Result<usize> {
        self.mutate(|| OsFs.write(fd, &bytes[..bytes.len().min(40_000)]))
    }

    fn pwrite(&self, fd: &OwnedFd, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.mutate(|| OsFs.pwrite(fd, bytes, offset))
    }

    fn ftruncate(&self, fd: &OwnedFd, size: u64) -> io::Result<()> {
        self.mutate(|| OsFs.ftruncate(fd, size))
    }

    fn fchmod(&self, fd: &OwnedFd, mode: u32) -> io::Result<()> {
        self.mutate(|| OsFs.fchmod(fd, mode))
    }

    fn fchown(&self, fd: &OwnedFd, uid: Option<u32>, gid: Option<u32>) -> io::Result<()> {
        self.mutate(|| OsFs.fchown(fd, uid, gid))
    }

    fn fsetxattr(&self, fd: &OwnedFd, attribute: &OsStr, value: &[u8]) -> io::Result<()> {
        self.mutate(|| OsFs.fsetxattr(fd, attribute, value))
    }

    fn symlinkat(&self, target: &OsStr, dir: &OwnedFd, name: &OsStr) -> io::Result<()> {
        self.mutate(|| OsFs.symlinkat(target, dir, name))
    }

    fn linkat(
        &self,
        old_dir: &OwnedFd,
        old_name: &OsStr,
        new_dir: &OwnedFd,
        new_name: &OsStr,
    ) -> io::Result<()> {
        self.mutate(|| OsFs.linkat(old_dir, old_name, new_dir, new_name))
    }

    fn renameat2(
        &self,
        old_dir: &OwnedFd,
        old_name: &OsStr,
        new_dir: &OwnedFd,
        new_name: &OsStr,
        mode: RenameMode,
    ) -> io::Result<()> {
        self.mutate(|| OsFs.renameat2(old_dir, old_name, new_dir, new_name, mode))
    }

    fn unlinkat(&self, dir: &OwnedFd, name: &OsStr, kind: RemoveKind) -> io::Result<()> {
        self.mutate(|| OsFs.unlinkat(dir, name, kind))
    }

    fn sync_file_range(&self, fd: &OwnedFd) -> io::Result<()> {
        self.mutate(|| OsFs.sync_file_range(fd))
    }

    fn fdatasync(&self, fd: &OwnedFd) -> io::Result<()> {
        self.mutate(|| OsFs.fdatasync(fd))
    }

    fn fsync(&self, fd: &OwnedFd) -> io::Result<()> {
        self.mutate(|| OsFs.fsync(fd))
    }

    fn syncfs(&self, fd: &OwnedFd) -> io::Result<()> {
        self.mutate(|| OsFs.syncfs(fd))
    }

    fn fstat(&self, fd: &OwnedFd) -> io::Result<Stat> {
        OsFs.fstat(fd)
    }

    fn fstatat(&self, dir: &OwnedFd, name: &OsStr) -> io::Result<Stat> {
        OsFs.fstatat(dir, name)
    }

    fn readlinkat(&self, dir: &OwnedFd, name: &OsStr) -> io::Result<OsString> {
        OsFs.readlinkat(dir, name)
    }

    fn read_dir(&self, dir: &OwnedFd) -> io::Result<Vec<DirEntry>> {
        OsFs.read_dir(dir)
    }

    fn flock(&self, fd: &OwnedFd, operation: FlockOperation) -> io::Result<()> {
        let is_the_one = self.locks_left.get() == Some(0);
        self.locks_left
            .set(self.locks_left.get().and_then(|left| left.checked_sub(1)));
        if is_the_one {
            (self.somebody_else)();
        }
        OsFs.flock(fd, operation)
    }
}
