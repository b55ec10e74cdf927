//! Renaming and exchanging.

use std::ffi::OsStr;
use std::io;
use std::rc::Rc;

use rustix::io::Errno;

use super::node::{Ino, Name};
use super::path::Last;
use super::state::State;
use crate::fs::RenameMode;

impl State {
    /// What renameat2(2) does, with the checks in the order of the kernel's `do_renameat2` and
    /// `vfs_rename`.
    pub(crate) fn rename(
        &mut self,
        old_dir: Ino,
        old: &OsStr,
        new_dir: Ino,
        new: &OsStr,
        mode: RenameMode,
    ) -> io::Result<()> {
        let old = self.place(old_dir, old)?;
        let new = self.place(new_dir, new)?;
        let Last::Name(old_name) = old.last else {
            return Err(Errno::BUSY.into());
        };
        let Last::Name(new_name) = new.last else {
            return Err(match mode {
                RenameMode::NoReplace => Errno::EXIST.into(),
                RenameMode::Replace | RenameMode::Exchange => Errno::BUSY.into(),
            });
        };
        if !self.is_directory(old.dir) || !self.is_directory(new.dir) {
            return Err(Errno::NOTDIR.into());
        }
        let source = self.step(old.dir, old.last).ok_or(Errno::NOENT)?;
        let target = self.step(new.dir, new.last);
        match (mode, target) {
            (RenameMode::NoReplace, Some(_)) => return Err(Errno::EXIST.into()),
            (RenameMode::Exchange, None) => return Err(Errno::NOENT.into()),
            _ => {}
        }
        let is_directory = self.is_directory(source);
        let slashes = old.wants_directory || new.wants_directory;
        match (mode, target) {
            (RenameMode::Exchange, Some(target)) => {
                let wrong = (old.wants_directory && !is_directory)
                    || (new.wants_directory && !self.is_directory(target));
                if wrong {
                    return Err(Errno::NOTDIR.into());
                }
            }
            _ if slashes && !is_directory => return Err(Errno::NOTDIR.into()),
            _ => {}
        }
        if is_directory && self.is_at_or_above(source, new.dir) {
            return Err(Errno::INVAL.into());
        }
        if let Some(target) = target
            && self.is_directory(target)
            && self.is_at_or_above(target, old.dir)
        {
            return Err(match mode {
                RenameMode::Exchange => Errno::INVAL.into(),
                RenameMode::Replace | RenameMode::NoReplace => Errno::NOTEMPTY.into(),
            });
        }
        if self.is_removed(new.dir) {
            return Err(Errno::NOENT.into());
        }
        // The same file under both names, or the same name twice: nothing happens.
        if target == Some(source) {
            return Ok(());
        }
        let old_name: Name = Rc::from(old_name);
        let new_name: Name = Rc::from(new_name);
        let left = match (mode, target) {
            (RenameMode::Exchange, target) => target,
            (RenameMode::Replace | RenameMode::NoReplace, None) => None,
            (RenameMode::Replace | RenameMode::NoReplace, Some(target)) => {
                self.check_replaced(is_directory, target)?;
                None
            }
        };
        self.set_entries(vec![
            (old.dir, old_name, left),
            (new.dir, new_name, Some(source)),
        ]);
        Ok(())
    }

    /// Whether a rename may replace a file, which it then removes.
    fn check_replaced(&mut self, by_directory: bool, target: Ino) -> io::Result<()> {
        match (by_directory, self.is_directory(target)) {
            (true, false) => Err(Errno::NOTDIR.into()),
            (false, true) => Err(Errno::ISDIR.into()),
            (true, true) if !self.is_empty(target) => Err(Errno::NOTEMPTY.into()),
            (true, true) => {
                self.live_mut(target).is_removed = true;
                Ok(())
            }
            (false, false) => Ok(()),
        }
    }
}
