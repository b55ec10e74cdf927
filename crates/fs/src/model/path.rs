//! Finding files by path, as `path_resolution(7)` describes it.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::rc::Rc;

use rustix::io::Errno;

use super::node::{Ino, Kind, ROOT};
use super::state::State;

/// The longest name and the longest path, without the zero byte at its end.
const NAME_BYTES_MAX: usize = 255;
const PATH_BYTES_MAX: usize = 4095;

/// How many links are followed in one call.
const LINKS_MAX: u32 = 40;

/// The last component of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Last<'a> {
    Name(&'a OsStr),
    Dot,
    DotDot,
    /// The path has no component: it is the root.
    Root,
}

/// Where a path leads, up to its last component.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) dir: Ino,
    pub(crate) last: Last<'a>,
    /// Whether a slash at the end asks for a directory.
    pub(crate) wants_directory: bool,
}

/// What an open leads to.
pub(crate) enum Found {
    File(Ino),
    /// Nothing, but it could be made here.
    Nothing {
        dir: Ino,
        name: OsString,
        wants_directory: bool,
    },
}

impl State {
    /// Goes to the directory of the last component. Links on the way are followed.
    pub(crate) fn place<'a>(&mut self, dir: Ino, path: &'a OsStr) -> io::Result<Place<'a>> {
        self.place_after(dir, path, 0)
    }

    fn place_after<'a>(&mut self, dir: Ino, path: &'a OsStr, links: u32) -> io::Result<Place<'a>> {
        let bytes = path.as_bytes();
        if bytes.contains(&0) {
            return Err(Errno::INVAL.into());
        }
        if bytes.is_empty() {
            return Err(Errno::NOENT.into());
        }
        if bytes.len() > PATH_BYTES_MAX {
            return Err(Errno::NAMETOOLONG.into());
        }
        let mut dir = if bytes[0] == b'/' { ROOT } else { dir };
        let mut parts = bytes.split(|&byte| byte == b'/').filter(|p| !p.is_empty());
        let mut last = Last::Root;
        let mut next = parts.next();
        while let Some(part) = next {
            if !self.is_directory(dir) {
                return Err(Errno::NOTDIR.into());
            }
            last = match part {
                b"." => Last::Dot,
                b".." => Last::DotDot,
                name if name.len() > NAME_BYTES_MAX => return Err(Errno::NAMETOOLONG.into()),
                name => Last::Name(OsStr::from_bytes(name)),
            };
            next = parts.next();
            if next.is_some() {
                let found = self.step(dir, last).ok_or(Errno::NOENT)?;
                dir = match self.follow(dir, found, links)? {
                    Found::File(ino) => ino,
                    Found::Nothing { .. } => return Err(Errno::NOENT.into()),
                };
            }
        }
        Ok(Place {
            dir,
            last,
            wants_directory: bytes.ends_with(b"/"),
        })
    }

    /// One component further, without following a link.
    pub(crate) fn step(&mut self, dir: Ino, last: Last<'_>) -> Option<Ino> {
        match last {
            Last::Dot => Some(dir),
            Last::Root => Some(ROOT),
            Last::DotDot => Some(self.live(dir).map_or(ROOT, |live| live.parent)),
            Last::Name(name) => {
                let ino = self.entry(dir, name)?;
                // So that `..` and the search for ancestors find the way back. Whoever has a
                // directory open has come by here.
                if dir != ROOT && self.is_directory(ino) {
                    self.live_mut(ino).parent = dir;
                }
                Some(ino)
            }
        }
    }

    /// What a link leads to in the end; anything else leads to itself.
    fn follow(&mut self, dir: Ino, ino: Ino, links: u32) -> io::Result<Found> {
        let Kind::Symlink(text) = self.kind(ino) else {
            return Ok(Found::File(ino));
        };
        let text = Rc::clone(text);
        if links >= LINKS_MAX {
            return Err(Errno::LOOP.into());
        }
        self.open_path(dir, &text, true, links + 1)
    }

    /// Goes along the whole path.
    pub(crate) fn open_path(
        &mut self,
        dir: Ino,
        path: &OsStr,
        follows_last: bool,
        links: u32,
    ) -> io::Result<Found> {
        let place = self.place_after(dir, path, links)?;
        if matches!(place.last, Last::Name(_)) && !self.is_directory(place.dir) {
            return Err(Errno::NOTDIR.into());
        }
        let found = match (self.step(place.dir, place.last), place.last) {
            (None, Last::Name(name)) => Found::Nothing {
                dir: place.dir,
                name: name.to_owned(),
                wants_directory: place.wants_directory,
            },
            (None, _) => return Err(Errno::NOENT.into()),
            (Some(ino), _) if follows_last || place.wants_directory => {
                self.follow(place.dir, ino, links)?
            }
            (Some(ino), _) => Found::File(ino),
        };
        match found {
            Found::File(ino) if place.wants_directory && !self.is_directory(ino) => {
                Err(Errno::NOTDIR.into())
            }
            found => Ok(found),
        }
    }

    /// The file that a path leads to.
    pub(crate) fn find(&mut self, dir: Ino, path: &OsStr, follows_last: bool) -> io::Result<Ino> {
        match self.open_path(dir, path, follows_last, 0)? {
            Found::File(ino) => Ok(ino),
            Found::Nothing { .. } => Err(Errno::NOENT.into()),
        }
    }

    /// Whether a directory is another one or lies above it. The way up ends at the root, or goes
    /// round a removed directory.
    pub(crate) fn is_at_or_above(&self, above: Ino, below: Ino) -> bool {
        let mut dir = below;
        for _ in 0..=self.infos.len() {
            if dir == above {
                return true;
            }
            if dir == ROOT {
                return false;
            }
            dir = self.live(dir).map_or(ROOT, |live| live.parent);
        }
        false
    }

    pub(crate) fn is_removed(&self, dir: Ino) -> bool {
        self.live(dir).is_some_and(|live| live.is_removed)
    }
}
