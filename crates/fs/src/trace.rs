//! Tells a hook about every mutating call: [`TraceFs`].

use std::ffi::{OsStr, OsString};
use std::io;

use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;

use crate::fs::{DirEntry, Fs, RemoveKind, RenameMode};
use crate::op::{Completed, OpKind};
use crate::request::{
    Counter, Request, join, mode_detail, open_detail, open_mutates, owner_detail,
};
use crate::stat::Stat;

/// Where a [`TraceFs`] stops after every mutating call.
pub trait Hook {
    /// Called once for every mutating call, after it has returned and before its caller learns
    /// of it. Calls that only look are not reported.
    ///
    /// # Errors
    /// An error takes the place of the call's own result: the caller sees the call fail, although
    /// what it did stays done.
    fn after(&self, call: &Completed) -> io::Result<()>;
}

impl<T: Fn(&Completed) -> io::Result<()>> Hook for T {
    fn after(&self, call: &Completed) -> io::Result<()> {
        self(call)
    }
}

/// A descriptor that knows the path by which it was opened.
///
/// The path does not follow later renames.
#[derive(Debug)]
pub struct TracedFd<T> {
    inner: T,
    path: String,
}

/// Passes every call on to another file system, and every mutating one through a hook.
///
/// All mutating calls are numbered, failed ones included, so that the same run gives the same
/// numbers. Paths are relative to the descriptor given to [`root`](TraceFs::root).
#[derive(Debug)]
pub struct TraceFs<F, H> {
    inner: F,
    hook: H,
    counter: Counter,
}

impl<F: Fs, H: Hook> TraceFs<F, H> {
    /// Traces `inner`, counting from the start.
    pub fn new(inner: F, hook: H) -> Self {
        Self {
            inner,
            hook,
            counter: Counter::default(),
        }
    }

    /// Makes a descriptor of the inner file system the root of all paths.
    pub fn root(&self, fd: F::Fd) -> TracedFd<F::Fd> {
        TracedFd {
            inner: fd,
            path: String::new(),
        }
    }

    /// The one way for a mutating call: number it, make it, report it.
    fn mutate<T>(&self, request: Request, call: impl FnOnce(&F) -> io::Result<T>) -> io::Result<T> {
        let op = self.counter.number(request);
        let result = call(&self.inner);
        let errno = result
            .as_ref()
            .err()
            .map(|error| error.raw_os_error().unwrap_or(Errno::IO.raw_os_error()));
        self.hook.after(&Completed { op, errno })?;
        result
    }
}

impl<F: Fs, H: Hook> Fs for TraceFs<F, H> {
    type Fd = TracedFd<F::Fd>;

    fn openat(
        &self,
        dir: &Self::Fd,
        name: &OsStr,
        flags: OFlags,
        mode: u32,
    ) -> io::Result<Self::Fd> {
        let path = join(&dir.path, name);
        let inner = if open_mutates(flags) {
            let request = Request::new(OpKind::Openat, &path, open_detail(flags, mode));
            self.mutate(request, |fs| fs.openat(&dir.inner, name, flags, mode))?
        } else {
            self.inner.openat(&dir.inner, name, flags, mode)?
        };
        Ok(TracedFd { inner, path })
    }

    fn mkdirat(&self, dir: &Self::Fd, name: &OsStr, mode: u32) -> io::Result<()> {
        let request = Request::new(OpKind::Mkdirat, &join(&dir.path, name), mode_detail(mode));
        self.mutate(request, |fs| fs.mkdirat(&dir.inner, name, mode))
    }

    fn read(&self, fd: &Self::Fd, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.read(&fd.inner, buffer)
    }

    fn write(&self, fd: &Self::Fd, bytes: &[u8]) -> io::Result<usize> {
        let detail = format!("{} bytes", bytes.len());
        let request = Request::new(OpKind::Write, &fd.path, detail);
        self.mutate(request, |fs| fs.write(&fd.inner, bytes))
    }

    fn pwrite(&self, fd: &Self::Fd, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let detail = format!("{} bytes at {offset}", bytes.len());
        let request = Request::new(OpKind::Pwrite, &fd.path, detail);
        self.mutate(request, |fs| fs.pwrite(&fd.inner, bytes, offset))
    }

    fn ftruncate(&self, fd: &Self::Fd, size: u64) -> io::Result<()> {
        let request = Request::new(OpKind::Ftruncate, &fd.path, format!("{size} bytes"));
        self.mutate(request, |fs| fs.ftruncate(&fd.inner, size))
    }

    fn fchmod(&self, fd: &Self::Fd, mode: u32) -> io::Result<()> {
        let request = Request::new(OpKind::Fchmod, &fd.path, mode_detail(mode));
        self.mutate(request, |fs| fs.fchmod(&fd.inner, mode))
    }

    fn fchown(&self, fd: &Self::Fd, uid: Option<u32>, gid: Option<u32>) -> io::Result<()> {
        let request = Request::new(OpKind::Fchown, &fd.path, owner_detail(uid, gid));
        self.mutate(request, |fs| fs.fchown(&fd.inner, uid, gid))
    }

    fn fsetxattr(&self, fd: &Self::Fd, attribute: &OsStr, value: &[u8]) -> io::Result<()> {
        let detail = format!("{} {} bytes", attribute.to_string_lossy(), value.len());
        let request = Request::new(OpKind::Fsetxattr, &fd.path, detail);
        self.mutate(request, |fs| fs.fsetxattr(&fd.inner, attribute, value))
    }

    fn symlinkat(&self, target: &OsStr, dir: &Self::Fd, name: &OsStr) -> io::Result<()> {
        let path = join(&dir.path, name);
        let request = Request::new(OpKind::Symlinkat, &path, target.to_string_lossy());
        self.mutate(request, |fs| fs.symlinkat(target, &dir.inner, name))
    }

    fn linkat(
        &self,
        old_dir: &Self::Fd,
        old_name: &OsStr,
        new_dir: &Self::Fd,
        new_name: &OsStr,
    ) -> io::Result<()> {
        let request = Request::new(OpKind::Linkat, &join(&old_dir.path, old_name), "")
            .to(join(&new_dir.path, new_name));
        self.mutate(request, |fs| {
            fs.linkat(&old_dir.inner, old_name, &new_dir.inner, new_name)
        })
    }

    fn renameat2(
        &self,
        old_dir: &Self::Fd,
        old_name: &OsStr,
        new_dir: &Self::Fd,
        new_name: &OsStr,
        mode: RenameMode,
    ) -> io::Result<()> {
        let old_path = join(&old_dir.path, old_name);
        let request = Request::new(OpKind::Renameat2, &old_path, mode.to_string())
            .to(join(&new_dir.path, new_name));
        self.mutate(request, |fs| {
            fs.renameat2(&old_dir.inner, old_name, &new_dir.inner, new_name, mode)
        })
    }

    fn unlinkat(&self, dir: &Self::Fd, name: &OsStr, kind: RemoveKind) -> io::Result<()> {
        let detail = match kind {
            RemoveKind::File => "",
            RemoveKind::Directory => "REMOVEDIR",
        };
        let request = Request::new(OpKind::Unlinkat, &join(&dir.path, name), detail);
        self.mutate(request, |fs| fs.unlinkat(&dir.inner, name, kind))
    }

    fn sync_file_range(&self, fd: &Self::Fd) -> io::Result<()> {
        let request = Request::new(OpKind::SyncFileRange, &fd.path, "WRITE");
        self.mutate(request, |fs| fs.sync_file_range(&fd.inner))
    }

    fn fdatasync(&self, fd: &Self::Fd) -> io::Result<()> {
        let request = Request::new(OpKind::Fdatasync, &fd.path, "");
        self.mutate(request, |fs| fs.fdatasync(&fd.inner))
    }

    fn fsync(&self, fd: &Self::Fd) -> io::Result<()> {
        let request = Request::new(OpKind::Fsync, &fd.path, "");
        self.mutate(request, |fs| fs.fsync(&fd.inner))
    }

    fn syncfs(&self, fd: &Self::Fd) -> io::Result<()> {
        let request = Request::new(OpKind::Syncfs, &fd.path, "");
        self.mutate(request, |fs| fs.syncfs(&fd.inner))
    }

    fn fstat(&self, fd: &Self::Fd) -> io::Result<Stat> {
        self.inner.fstat(&fd.inner)
    }

    fn fstatat(&self, dir: &Self::Fd, name: &OsStr) -> io::Result<Stat> {
        self.inner.fstatat(&dir.inner, name)
    }

    fn readlinkat(&self, dir: &Self::Fd, name: &OsStr) -> io::Result<OsString> {
        self.inner.readlinkat(&dir.inner, name)
    }

    fn read_dir(&self, dir: &Self::Fd) -> io::Result<Vec<DirEntry>> {
        self.inner.read_dir(&dir.inner)
    }

    fn flock(&self, fd: &Self::Fd, operation: FlockOperation) -> io::Result<()> {
        self.inner.flock(&fd.inner, operation)
    }
}
