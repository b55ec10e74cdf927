//! Calls that make and remove names.

use std::ffi::OsStr;
use std::io;
use std::rc::Rc;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::node::{Ino, Kind};
use super::path::{Found, Last, Place};
use super::state::State;
use crate::fs::RemoveKind;

impl State {
    /// What openat(2) does up to the descriptor.
    pub(crate) fn open(
        &mut self,
        dir: Ino,
        path: &OsStr,
        flags: OFlags,
        mode: u32,
    ) -> io::Result<Ino> {
        if flags.contains(OFlags::CREATE | OFlags::DIRECTORY) {
            return Err(Errno::INVAL.into());
        }
        #[cfg(target_os = "linux")]
        if flags.contains(OFlags::TMPFILE) {
            return Err(Errno::OPNOTSUPP.into());
        }
        let creates = flags.contains(OFlags::CREATE);
        let exclusive = creates && flags.contains(OFlags::EXCL);
        let follows = !flags.contains(OFlags::NOFOLLOW) && !exclusive;
        let ino = match self.open_path(dir, path, follows, 0)? {
            Found::Nothing {
                wants_directory, ..
            } if creates && wants_directory => {
                return Err(Errno::ISDIR.into());
            }
            Found::Nothing { dir, name, .. } if creates => {
                if self.is_removed(dir) {
                    return Err(Errno::NOENT.into());
                }
                let mode = mode & 0o7777 & !self.umask;
                return Ok(self.create(dir, &name, Kind::Regular, mode));
            }
            Found::Nothing { .. } => return Err(Errno::NOENT.into()),
            Found::File(_) if exclusive => return Err(Errno::EXIST.into()),
            Found::File(ino) => ino,
        };
        let writes = flags.intersects(OFlags::WRONLY | OFlags::RDWR);
        let is_path = is_path(flags);
        match self.kind(ino) {
            Kind::Directory
                if creates || (!is_path && (writes || flags.contains(OFlags::TRUNC))) =>
            {
                Err(Errno::ISDIR.into())
            }
            Kind::Regular | Kind::Symlink(_) if flags.contains(OFlags::DIRECTORY) => {
                Err(Errno::NOTDIR.into())
            }
            Kind::Symlink(_) if !is_path => Err(Errno::LOOP.into()),
            Kind::Regular if flags.contains(OFlags::TRUNC) && !is_path => {
                self.truncate(ino, 0);
                Ok(ino)
            }
            Kind::Regular | Kind::Directory | Kind::Symlink(_) => Ok(ino),
        }
    }

    /// The place of a name that is about to be made: free, and in a directory that is there.
    fn free_place<'a>(&mut self, dir: Ino, path: &'a OsStr) -> io::Result<(Place<'a>, &'a OsStr)> {
        let place = self.place(dir, path)?;
        let Last::Name(name) = place.last else {
            return Err(Errno::EXIST.into());
        };
        if !self.is_directory(place.dir) {
            return Err(Errno::NOTDIR.into());
        }
        if self.step(place.dir, place.last).is_some() {
            return Err(Errno::EXIST.into());
        }
        if self.is_removed(place.dir) {
            return Err(Errno::NOENT.into());
        }
        Ok((place, name))
    }

    pub(crate) fn mkdir(&mut self, dir: Ino, path: &OsStr, mode: u32) -> io::Result<()> {
        let (place, name) = self.free_place(dir, path)?;
        let mode = mode & 0o1777 & !self.umask;
        self.create(place.dir, name, Kind::Directory, mode);
        Ok(())
    }

    pub(crate) fn symlink(&mut self, text: &OsStr, dir: Ino, path: &OsStr) -> io::Result<()> {
        if text.is_empty() {
            return Err(Errno::NOENT.into());
        }
        if text.len() > 4095 {
            return Err(Errno::NAMETOOLONG.into());
        }
        let (place, name) = self.free_place(dir, path)?;
        if place.wants_directory {
            return Err(Errno::NOENT.into());
        }
        self.create(place.dir, name, Kind::Symlink(Rc::from(text)), 0o777);
        Ok(())
    }

    pub(crate) fn link(
        &mut self,
        old_dir: Ino,
        old: &OsStr,
        new_dir: Ino,
        new: &OsStr,
    ) -> io::Result<()> {
        let ino = self.find(old_dir, old, false)?;
        let (place, name) = self.free_place(new_dir, new)?;
        if place.wants_directory {
            return Err(Errno::NOENT.into());
        }
        if self.is_directory(ino) {
            return Err(Errno::PERM.into());
        }
        self.set_entries(vec![(place.dir, Rc::from(name), Some(ino))]);
        Ok(())
    }

    pub(crate) fn unlink(&mut self, dir: Ino, path: &OsStr, kind: RemoveKind) -> io::Result<()> {
        let place = self.place(dir, path)?;
        let name = match (place.last, kind) {
            (Last::Name(name), _) => name,
            (_, RemoveKind::File) => return Err(Errno::ISDIR.into()),
            (Last::Dot, RemoveKind::Directory) => return Err(Errno::INVAL.into()),
            (Last::DotDot, RemoveKind::Directory) => return Err(Errno::NOTEMPTY.into()),
            (Last::Root, RemoveKind::Directory) => return Err(Errno::BUSY.into()),
        };
        if !self.is_directory(place.dir) {
            return Err(Errno::NOTDIR.into());
        }
        let ino = self.step(place.dir, place.last).ok_or(Errno::NOENT)?;
        match (self.is_directory(ino), kind) {
            (true, RemoveKind::File) => return Err(Errno::ISDIR.into()),
            (false, RemoveKind::File) if place.wants_directory => return Err(Errno::NOTDIR.into()),
            (false, RemoveKind::Directory) => return Err(Errno::NOTDIR.into()),
            (true, RemoveKind::Directory) if !self.is_empty(ino) => {
                return Err(Errno::NOTEMPTY.into());
            }
            (true, RemoveKind::Directory) => self.live_mut(ino).is_removed = true,
            (false, RemoveKind::File) => {}
        }
        self.set_entries(vec![(place.dir, Rc::from(name), None)]);
        Ok(())
    }
}

/// Whether an open is for a path only, so that the descriptor can neither read nor write.
pub(crate) fn is_path(flags: OFlags) -> bool {
    #[cfg(target_os = "linux")]
    return flags.contains(OFlags::PATH);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = flags;
        false
    }
}
