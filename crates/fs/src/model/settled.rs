//! A durable state that is known: [`Settled`].

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::rc::Rc;

use super::node::{Attributes, Ino, Name, Page};

/// Inodes by number.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Settled {
    pub(crate) inodes: Vec<SettledInode>,
}

/// All of an inode that can change.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct SettledInode {
    pub(crate) attributes: Rc<Attributes>,
    pub(crate) size: u64,
    pub(crate) pages: BTreeMap<u64, Page>,
    pub(crate) entries: BTreeMap<Name, Ino>,
}

impl Settled {
    fn inode(&self, ino: Ino) -> Option<&SettledInode> {
        self.inodes.get(ino as usize)
    }

    pub(crate) fn entry(&self, dir: Ino, name: &OsStr) -> Option<Ino> {
        self.inode(dir)?.entries.get(name).copied()
    }

    pub(crate) fn add_names(&self, dir: Ino, names: &mut BTreeSet<Name>) {
        let inode = self.inode(dir).into_iter();
        names.extend(inode.flat_map(|inode| inode.entries.keys().cloned()));
    }

    pub(crate) fn attributes(&self, ino: Ino) -> Option<Rc<Attributes>> {
        self.inode(ino).map(|inode| Rc::clone(&inode.attributes))
    }

    pub(crate) fn size(&self, ino: Ino) -> u64 {
        self.inode(ino).map_or(0, |inode| inode.size)
    }

    pub(crate) fn page(&self, ino: Ino, index: u64) -> Option<Page> {
        self.inode(ino)?.pages.get(&index).cloned()
    }

    pub(crate) fn add_pages(&self, ino: Ino, pages: &mut BTreeSet<u64>) {
        let inode = self.inode(ino).into_iter();
        pages.extend(inode.flat_map(|inode| inode.pages.keys()));
    }
}
