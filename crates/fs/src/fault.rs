//! Breaks calls as a plan says: [`FaultFs`].

use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::io;

use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;

use crate::fs::{DirEntry, Fs, RemoveKind, RenameMode};
use crate::op::{Completed, OpKind};
use crate::plan::{After, Before, FaultPlan, Look, LookKind};
use crate::request::{
    Counter, Request, join, mode_detail, open_detail, open_mutates, owner_detail,
};
use crate::stat::Stat;

/// A descriptor that knows the path by which it was opened.
///
/// The path does not follow later renames, and is empty under a plan that is not active.
#[derive(Debug)]
pub struct FaultFd<T> {
    inner: T,
    path: String,
}

impl<T> FaultFd<T> {
    /// The descriptor of the inner file system.
    pub fn inner(&self) -> &T {
        &self.inner
    }
}

/// The error of every call after the death of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the process was killed by the fault plan")]
pub struct Killed;

/// Passes every call on to another file system, unless its [`FaultPlan`] says otherwise.
///
/// A kill is modelled inside the process: the call at which it strikes and every later one return
/// [`Killed`] and do nothing, so that whatever the caller still tries has no effect. Mutating
/// calls are numbered as by [`TraceFs`](crate::TraceFs), failed and dropped ones included.
#[derive(Debug)]
pub struct FaultFs<F, P> {
    inner: F,
    plan: P,
    counter: Counter,
    looks: Cell<u32>,
    dead: Cell<bool>,
    next_write_fails: Cell<Option<i32>>,
}

impl<F: Fs, P: FaultPlan> FaultFs<F, P> {
    /// Breaks the calls to `inner`, counting from the start.
    pub fn new(inner: F, plan: P) -> Self {
        Self {
            inner,
            plan,
            counter: Counter::default(),
            looks: Cell::new(0),
            dead: Cell::new(false),
            next_write_fails: Cell::new(None),
        }
    }

    /// Makes a descriptor of the inner file system the root of all paths.
    pub fn root(&self, fd: F::Fd) -> FaultFd<F::Fd> {
        FaultFd {
            inner: fd,
            path: String::new(),
        }
    }

    /// The file system underneath.
    pub fn inner(&self) -> &F {
        &self.inner
    }

    /// Whether the plan has killed the process.
    pub fn is_dead(&self) -> bool {
        self.dead.get()
    }

    fn alive(&self) -> io::Result<()> {
        if self.dead.get() {
            Err(io::Error::other(Killed))
        } else {
            Ok(())
        }
    }

    fn die<T>(&self) -> io::Result<T> {
        self.dead.set(true);
        Err(io::Error::other(Killed))
    }

    /// The one way for a mutating call. `call` is given the number of bytes that a write may
    /// take; `dropped` is what a call reports that is not made.
    fn mutate<T>(
        &self,
        request: impl FnOnce() -> Request,
        call: impl FnOnce(&F, usize) -> io::Result<T>,
        dropped: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        self.alive()?;
        if !self.plan.is_active() {
            return call(&self.inner, usize::MAX);
        }
        let op = self.counter.number(request());
        let is_write = matches!(op.kind, OpKind::Write | OpKind::Pwrite);
        let before = match self.next_write_fails.get() {
            Some(errno) if is_write => {
                self.next_write_fails.set(None);
                Before::Fail(errno)
            }
            _ => self.plan.before(&op),
        };
        let result = match before {
            Before::Proceed => call(&self.inner, usize::MAX),
            Before::Fail(errno) => Err(io::Error::from_raw_os_error(errno)),
            Before::Short { bytes, then } => {
                if is_write {
                    self.next_write_fails.set(then);
                }
                call(&self.inner, bytes)
            }
            Before::Drop => dropped(),
            Before::Kill => return self.die(),
        };
        let errno = result
            .as_ref()
            .err()
            .map(|error| error.raw_os_error().unwrap_or(Errno::IO.raw_os_error()));
        match self.plan.after(&Completed { op, errno }) {
            After::Proceed => result,
            After::Fail(errno) => Err(io::Error::from_raw_os_error(errno)),
            After::Kill => self.die(),
        }
    }

    /// A mutating call that returns nothing.
    fn change(
        &self,
        request: impl FnOnce() -> Request,
        call: impl FnOnce(&F) -> io::Result<()>,
    ) -> io::Result<()> {
        self.mutate(request, |fs, _| call(fs), || Ok(()))
    }

    /// The one way for a call that only looks.
    fn look<T>(
        &self,
        kind: LookKind,
        path: impl FnOnce() -> String,
        call: impl FnOnce(&F) -> io::Result<T>,
    ) -> io::Result<T> {
        self.alive()?;
        if self.plan.is_active() {
            let index = self.looks.get();
            self.looks.set(index + 1);
            let mut path = path();
            if path.is_empty() {
                path.push('.');
            }
            let look = Look { index, kind, path };
            if let Some(errno) = self.plan.look(&look) {
                return Err(io::Error::from_raw_os_error(errno));
            }
        }
        call(&self.inner)
    }
}

impl<F: Fs, P: FaultPlan> Fs for FaultFs<F, P> {
    type Fd = FaultFd<F::Fd>;

    fn openat(
        &self,
        dir: &Self::Fd,
        name: &OsStr,
        flags: OFlags,
        mode: u32,
    ) -> io::Result<Self::Fd> {
        let path = if self.plan.is_active() {
            join(&dir.path, name)
        } else {
            String::new()
        };
        let inner = if open_mutates(flags) {
            self.mutate(
                || Request::new(OpKind::Openat, &path, open_detail(flags, mode)),
                |fs, _| fs.openat(&dir.inner, name, flags, mode),
                || Err(Errno::NOSYS.into()),
            )?
        } else {
            self.look(
                LookKind::Openat,
                || path.clone(),
                |fs| fs.openat(&dir.inner, name, flags, mode),
            )?
        };
        Ok(FaultFd { inner, path })
    }

    fn mkdirat(&self, dir: &Self::Fd, name: &OsStr, mode: u32) -> io::Result<()> {
        self.change(
            || Request::new(OpKind::Mkdirat, &join(&dir.path, name), mode_detail(mode)),
            |fs| fs.mkdirat(&dir.inner, name, mode),
        )
    }

    fn read(&self, fd: &Self::Fd, buffer: &mut [u8]) -> io::Result<usize> {
        let path = || fd.path.clone();
        self.look(LookKind::Read, path, |fs| fs.read(&fd.inner, buffer))
    }

    fn write(&self, fd: &Self::Fd, bytes: &[u8]) -> io::Result<usize> {
        let detail = || format!("{} bytes", bytes.len());
        self.mutate(
            || Request::new(OpKind::Write, &fd.path, detail()),
            |fs, max| fs.write(&fd.inner, &bytes[..bytes.len().min(max)]),
            || Ok(bytes.len()),
        )
    }

    fn pwrite(&self, fd: &Self::Fd, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let detail = || format!("{} bytes at {offset}", bytes.len());
        self.mutate(
            || Request::new(OpKind::Pwrite, &fd.path, detail()),
            |fs, max| fs.pwrite(&fd.inner, &bytes[..bytes.len().min(max)], offset),
            || Ok(bytes.len()),
        )
    }

    fn ftruncate(&self, fd: &Self::Fd, size: u64) -> io::Result<()> {
        self.change(
            || Request::new(OpKind::Ftruncate, &fd.path, format!("{size} bytes")),
            |fs| fs.ftruncate(&fd.inner, size),
        )
    }

    fn fchmod(&self, fd: &Self::Fd, mode: u32) -> io::Result<()> {
        self.change(
            || Request::new(OpKind::Fchmod, &fd.path, mode_detail(mode)),
            |fs| fs.fchmod(&fd.inner, mode),
        )
    }

    fn fchown(&self, fd: &Self::Fd, uid: Option<u32>, gid: Option<u32>) -> io::Result<()> {
        self.change(
            || Request::new(OpKind::Fchown, &fd.path, owner_detail(uid, gid)),
            |fs| fs.fchown(&fd.inner, uid, gid),
        )
    }

    fn fsetxattr(&self, fd: &Self::Fd, attribute: &OsStr, value: &[u8]) -> io::Result<()> {
        let detail = || format!("{} {} bytes", attribute.to_string_lossy(), value.len());
        self.change(
            || Request::new(OpKind::Fsetxattr, &fd.path, detail()),
            |fs| fs.fsetxattr(&fd.inner, attribute, value),
        )
    }

    fn symlinkat(&self, target: &OsStr, dir: &Self::Fd, name: &OsStr) -> io::Result<()> {
        let path = || join(&dir.path, name);
        self.change(
            || Request::new(OpKind::Symlinkat, &path(), target.to_string_lossy()),
            |fs| fs.symlinkat(target, &dir.inner, name),
        )
    }

    fn linkat(
        &self,
        old_dir: &Self::Fd,
        old_name: &OsStr,
        new_dir: &Self::Fd,
        new_name: &OsStr,
    ) -> io::Result<()> {
        self.change(
            || {
                Request::new(OpKind::Linkat, &join(&old_dir.path, old_name), "")
                    .to(join(&new_dir.path, new_name))
            },
            |fs| fs.linkat(&old_dir.inner, old_name, &new_dir.inner, new_name),
        )
    }

    fn renameat2(
        &self,
        old_dir: &Self::Fd,
        old_name: &OsStr,
        new_dir: &Self::Fd,
        new_name: &OsStr,
        mode: RenameMode,
    ) -> io::Result<()> {
        self.change(
            || {
                let old_path = join(&old_dir.path, old_name);
                Request::new(OpKind::Renameat2, &old_path, mode.to_string())
                    .to(join(&new_dir.path, new_name))
            },
            |fs| fs.renameat2(&old_dir.inner, old_name, &new_dir.inner, new_name, mode),
        )
    }

    fn unlinkat(&self, dir: &Self::Fd, name: &OsStr, kind: RemoveKind) -> io::Result<()> {
        let detail = match kind {
            RemoveKind::File => "",
            RemoveKind::Directory => "REMOVEDIR",
        };
        self.change(
            || Request::new(OpKind::Unlinkat, &join(&dir.path, name), detail),
            |fs| fs.unlinkat(&dir.inner, name, kind),
        )
    }

    fn sync_file_range(&self, fd: &Self::Fd) -> io::Result<()> {
        self.change(
            || Request::new(OpKind::SyncFileRange, &fd.path, "WRITE"),
            |fs| fs.sync_file_range(&fd.inner),
        )
    }

    fn fdatasync(&self, fd: &Self::Fd) -> io::Result<()> {
        self.change(
            || Request::new(OpKind::Fdatasync, &fd.path, ""),
            |fs| fs.fdatasync(&fd.inner),
        )
    }

    fn fsync(&self, fd: &Self::Fd) -> io::Result<()> {
        self.change(
            || Request::new(OpKind::Fsync, &fd.path, ""),
            |fs| fs.fsync(&fd.inner),
        )
    }

    fn syncfs(&self, fd: &Self::Fd) -> io::Result<()> {
        self.change(
            || Request::new(OpKind::Syncfs, &fd.path, ""),
            |fs| fs.syncfs(&fd.inner),
        )
    }

    fn fstat(&self, fd: &Self::Fd) -> io::Result<Stat> {
        let path = || fd.path.clone();
        self.look(LookKind::Fstat, path, |fs| fs.fstat(&fd.inner))
    }

    fn fstatat(&self, dir: &Self::Fd, name: &OsStr) -> io::Result<Stat> {
        let path = || join(&dir.path, name);
        self.look(LookKind::Fstatat, path, |fs| fs.fstatat(&dir.inner, name))
    }

    fn readlinkat(&self, dir: &Self::Fd, name: &OsStr) -> io::Result<OsString> {
        let path = || join(&dir.path, name);
        self.look(LookKind::Readlinkat, path, |fs| {
            fs.readlinkat(&dir.inner, name)
        })
    }

    fn read_dir(&self, dir: &Self::Fd) -> io::Result<Vec<DirEntry>> {
        let path = || dir.path.clone();
        self.look(LookKind::ReadDir, path, |fs| fs.read_dir(&dir.inner))
    }

    fn flock(&self, fd: &Self::Fd, operation: FlockOperation) -> io::Result<()> {
        let path = || fd.path.clone();
        self.look(LookKind::Flock, path, |fs| fs.flock(&fd.inner, operation))
    }
}
