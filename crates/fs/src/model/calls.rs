//! The calls of the trait, each on one descriptor or more: [`ModelFd`].

use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::rc::Rc;

use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;

use super::names::is_path;
use super::node::{Attributes, Ino, Kind, ROOT};
use super::state::State;
use super::{ModelFs, Shared};
use crate::fs::{DirEntry, Fs, RemoveKind, RenameMode};
use crate::stat::Stat;

/// The largest size of a file.
const FILE_BYTES_MAX: u64 = i64::MAX as u64;

/// The largest value of an extended attribute (`XATTR_SIZE_MAX`).
const XATTR_BYTES_MAX: usize = 1 << 16;

/// An open file or directory of a [`ModelFs`].
pub struct ModelFd {
    ino: Ino,
    position: Cell<u64>,
    flags: OFlags,
    description: u64,
    shared: Rc<Shared>,
}

impl fmt::Debug for ModelFd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelFd")
            .field("ino", &self.ino)
            .finish_non_exhaustive()
    }
}

impl Drop for ModelFd {
    fn drop(&mut self) {
        self.shared
            .state
            .borrow_mut()
            .locks
            .release(self.description);
    }
}

impl ModelFd {
    /// For calls that an `O_PATH` descriptor does not take.
    fn opened(&self) -> io::Result<Ino> {
        if is_path(self.flags) {
            Err(Errno::BADF.into())
        } else {
            Ok(self.ino)
        }
    }

    fn writes(&self) -> bool {
        self.flags.intersects(OFlags::WRONLY | OFlags::RDWR)
    }
}

impl ModelFs {
    pub(crate) fn open_directory(&self, ino: Ino) -> ModelFd {
        self.describe(ino, OFlags::RDONLY)
    }

    fn describe(&self, ino: Ino, flags: OFlags) -> ModelFd {
        let mut state = self.shared.state.borrow_mut();
        state.descriptions += 1;
        ModelFd {
            ino,
            position: Cell::new(0),
            flags,
            description: state.descriptions,
            shared: Rc::clone(&self.shared),
        }
    }

    fn write_at(&self, fd: &ModelFd, bytes: &[u8], offset: Option<u64>) -> io::Result<usize> {
        let ino = fd.opened()?;
        if !fd.writes() {
            return Err(Errno::BADF.into());
        }
        if bytes.is_empty() {
            return Ok(0);
        }
        let mut state = self.shared.state.borrow_mut();
        // Linux appends even where an offset is given (pwrite(2), "BUGS").
        let start = if fd.flags.contains(OFlags::APPEND) {
            state.size(ino)
        } else {
            offset.unwrap_or_else(|| fd.position.get())
        };
        let end = start.saturating_add(bytes.len() as u64);
        if end > FILE_BYTES_MAX {
            return Err(Errno::FBIG.into());
        }
        state.write_at(ino, start, bytes);
        if offset.is_none() {
            fd.position.set(end);
        }
        Ok(bytes.len())
    }

    fn change_attributes(
        &self,
        fd: &ModelFd,
        change: impl FnOnce(&mut Attributes, &Kind) -> io::Result<()>,
    ) -> io::Result<()> {
        let ino = fd.opened()?;
        let mut state = self.shared.state.borrow_mut();
        let mut attributes = Attributes::clone(&state.attributes(ino));
        change(&mut attributes, state.kind(ino))?;
        state.set_attributes(ino, attributes);
        Ok(())
    }
}

fn stat_of(state: &State, ino: Ino) -> Stat {
    let attributes = state.attributes(ino);
    let size = match state.kind(ino) {
        Kind::Regular => state.size(ino),
        Kind::Directory => 4096,
        Kind::Symlink(text) => text.len() as u64,
    };
    Stat {
        dev: 1,
        ino: u64::from(ino) + 1,
        mount_id: Some(1),
        mount_root: Some(ino == ROOT),
        kind: state.kind(ino).file_kind(),
        mode: attributes.mode,
        uid: attributes.uid,
        gid: attributes.gid,
        size,
    }
}

impl Fs for ModelFs {
    type Fd = ModelFd;

    fn openat(&self, dir: &ModelFd, name: &OsStr, flags: OFlags, mode: u32) -> io::Result<ModelFd> {
        let ino = self
            .shared
            .state
            .borrow_mut()
            .open(dir.ino, name, flags, mode)?;
        Ok(self.describe(ino, flags))
    }

    fn mkdirat(&self, dir: &ModelFd, name: &OsStr, mode: u32) -> io::Result<()> {
        self.shared.state.borrow_mut().mkdir(dir.ino, name, mode)
    }

    fn read(&self, fd: &ModelFd, buffer: &mut [u8]) -> io::Result<usize> {
        let ino = fd.opened()?;
        if fd.flags.contains(OFlags::WRONLY) {
            return Err(Errno::BADF.into());
        }
        let state = self.shared.state.borrow();
        if state.is_directory(ino) {
            return Err(Errno::ISDIR.into());
        }
        let count = state.read_at(ino, fd.position.get(), buffer);
        fd.position.set(fd.position.get() + count as u64);
        Ok(count)
    }

    fn write(&self, fd: &ModelFd, bytes: &[u8]) -> io::Result<usize> {
        self.write_at(fd, bytes, None)
    }

    fn pwrite(&self, fd: &ModelFd, bytes: &[u8], offset: u64) -> io::Result<usize> {
        if offset > FILE_BYTES_MAX {
            return Err(Errno::INVAL.into());
        }
        self.write_at(fd, bytes, Some(offset))
    }

    fn ftruncate(&self, fd: &ModelFd, size: u64) -> io::Result<()> {
        let ino = fd.opened()?;
        if !fd.writes() || size > FILE_BYTES_MAX {
            return Err(Errno::INVAL.into());
        }
        self.shared.state.borrow_mut().truncate(ino, size);
        Ok(())
    }

    fn fchmod(&self, fd: &ModelFd, mode: u32) -> io::Result<()> {
        self.change_attributes(fd, |attributes, _| {
            attributes.mode = mode & 0o7777;
            Ok(())
        })
    }

    fn fchown(&self, fd: &ModelFd, uid: Option<u32>, gid: Option<u32>) -> io::Result<()> {
        self.change_attributes(fd, |attributes, kind| {
            attributes.uid = uid.unwrap_or(attributes.uid);
            attributes.gid = gid.unwrap_or(attributes.gid);
            // A change of owner takes set-id bits away, even when root makes it (chown(2)).
            if !matches!(kind, Kind::Directory) {
                attributes.mode &= !0o4000;
                if attributes.mode & 0o010 != 0 {
                    attributes.mode &= !0o2000;
                }
            }
            Ok(())
        })
    }

    fn fsetxattr(&self, fd: &ModelFd, attribute: &OsStr, value: &[u8]) -> io::Result<()> {
        let name = attribute.as_encoded_bytes();
        if name.is_empty() || name.len() > 255 {
            return Err(Errno::RANGE.into());
        }
        if value.len() > XATTR_BYTES_MAX {
            return Err(Errno::TOOBIG.into());
        }
        let spaces: [&[u8]; 3] = [b"user.", b"trusted.", b"security."];
        let known = |space: &&[u8]| name.len() > space.len() && name.starts_with(space);
        if !spaces.iter().any(known) {
            return Err(Errno::OPNOTSUPP.into());
        }
        self.change_attributes(fd, |attributes, _| {
            let (name, value) = (Rc::from(attribute), Rc::from(value));
            attributes.xattrs.insert(name, value);
            Ok(())
        })
    }

    fn symlinkat(&self, target: &OsStr, dir: &ModelFd, name: &OsStr) -> io::Result<()> {
        self.shared
            .state
            .borrow_mut()
            .symlink(target, dir.ino, name)
    }

    fn linkat(
        &self,
        old_dir: &ModelFd,
        old_name: &OsStr,
        new_dir: &ModelFd,
        new_name: &OsStr,
    ) -> io::Result<()> {
        let mut state = self.shared.state.borrow_mut();
        state.link(old_dir.ino, old_name, new_dir.ino, new_name)
    }

    fn renameat2(
        &self,
        old_dir: &ModelFd,
        old_name: &OsStr,
        new_dir: &ModelFd,
        new_name: &OsStr,
        mode: RenameMode,
    ) -> io::Result<()> {
        let mut state = self.shared.state.borrow_mut();
        state.rename(old_dir.ino, old_name, new_dir.ino, new_name, mode)
    }

    fn unlinkat(&self, dir: &ModelFd, name: &OsStr, kind: RemoveKind) -> io::Result<()> {
        self.shared.state.borrow_mut().unlink(dir.ino, name, kind)
    }

    fn sync_file_range(&self, fd: &ModelFd) -> io::Result<()> {
        fd.opened().map(drop)
    }

    fn fdatasync(&self, fd: &ModelFd) -> io::Result<()> {
        let ino = fd.opened()?;
        let mut state = self.shared.state.borrow_mut();
        if state.is_directory(ino) {
            state.log.sync_directory(ino);
        } else {
            state.log.sync_file(ino, false);
        }
        Ok(())
    }

    fn fsync(&self, fd: &ModelFd) -> io::Result<()> {
        let ino = fd.opened()?;
        let mut state = self.shared.state.borrow_mut();
        if state.is_directory(ino) {
            state.log.sync_directory(ino);
        } else {
            state.log.sync_file(ino, true);
        }
        Ok(())
    }

    fn syncfs(&self, fd: &ModelFd) -> io::Result<()> {
        fd.opened()?;
        self.shared.state.borrow_mut().log.sync_all();
        Ok(())
    }

    fn fstat(&self, fd: &ModelFd) -> io::Result<Stat> {
        Ok(stat_of(&self.shared.state.borrow(), fd.ino))
    }

    fn fstatat(&self, dir: &ModelFd, name: &OsStr) -> io::Result<Stat> {
        let mut state = self.shared.state.borrow_mut();
        let ino = state.find(dir.ino, name, false)?;
        Ok(stat_of(&state, ino))
    }

    fn readlinkat(&self, dir: &ModelFd, name: &OsStr) -> io::Result<OsString> {
        let mut state = self.shared.state.borrow_mut();
        let ino = state.find(dir.ino, name, false)?;
        match state.kind(ino) {
            Kind::Symlink(text) => Ok(OsStr::to_owned(text)),
            Kind::Regular | Kind::Directory => Err(Errno::INVAL.into()),
        }
    }

    fn read_dir(&self, dir: &ModelFd) -> io::Result<Vec<DirEntry>> {
        let ino = dir.opened()?;
        let state = self.shared.state.borrow();
        if !state.is_directory(ino) {
            return Err(Errno::NOTDIR.into());
        }
        let names = state.possible_names(ino);
        let entries = names.iter().filter_map(|name| {
            let found = state.entry(ino, name)?;
            Some(DirEntry {
                name: OsStr::to_owned(name),
                kind: state.kind(found).file_kind(),
            })
        });
        Ok(entries.collect())
    }

    fn flock(&self, fd: &ModelFd, operation: FlockOperation) -> io::Result<()> {
        let ino = fd.opened()?;
        let mut state = self.shared.state.borrow_mut();
        state.locks.apply(ino, fd.description, operation)
    }
}
