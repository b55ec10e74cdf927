//! What was durable when a history began: [`Base`].

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::rc::Rc;

use super::node::{Attributes, Ino, Name, Page};
use super::settled::Settled;
use super::survivor::Survivor;

/// The durable state under a history: known, or what an earlier crash has left and nobody has
/// looked at yet. Inodes that it does not know are as they were created.
#[derive(Clone)]
pub(crate) enum Base {
    Settled(Rc<Settled>),
    Survivor(Rc<Survivor>),
}

impl Base {
    pub(crate) fn entry(&self, dir: Ino, name: &OsStr) -> Option<Ino> {
        match self {
            Self::Settled(settled) => settled.entry(dir, name),
            Self::Survivor(survivor) => survivor.entry(dir, name),
        }
    }

    /// Every name that the directory may have.
    pub(crate) fn add_names(&self, dir: Ino, names: &mut BTreeSet<Name>) {
        match self {
            Self::Settled(settled) => settled.add_names(dir, names),
            Self::Survivor(survivor) => survivor.add_names(dir, names),
        }
    }

    pub(crate) fn attributes(&self, ino: Ino) -> Option<Rc<Attributes>> {
        match self {
            Self::Settled(settled) => settled.attributes(ino),
            Self::Survivor(survivor) => survivor.attributes(ino),
        }
    }

    pub(crate) fn size(&self, ino: Ino) -> u64 {
        match self {
            Self::Settled(settled) => settled.size(ino),
            Self::Survivor(survivor) => survivor.size(ino),
        }
    }

    /// A page, without what lies behind the size; `None` for zeros.
    pub(crate) fn page(&self, ino: Ino, index: u64) -> Option<Page> {
        match self {
            Self::Settled(settled) => settled.page(ino, index),
            Self::Survivor(survivor) => survivor.page(ino, index),
        }
    }

    /// Every page that may hold something else than zeros.
    pub(crate) fn add_pages(&self, ino: Ino, pages: &mut BTreeSet<u64>) {
        match self {
            Self::Settled(settled) => settled.add_pages(ino, pages),
            Self::Survivor(survivor) => survivor.add_pages(ino, pages),
        }
    }

    /// The known state, if it is known.
    pub(crate) fn settled(&self) -> Option<&Rc<Settled>> {
        match self {
            Self::Settled(settled) => Some(settled),
            Self::Survivor(_) => None,
        }
    }

    /// How many crashes lie behind.
    pub(crate) fn crashes(&self) -> u64 {
        match self {
            Self::Settled(_) => 0,
            Self::Survivor(survivor) => survivor.crashes(),
        }
    }
}
