//! The live file system: [`State`], a durable state and what was done since.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::rc::Rc;

use super::base::Base;
use super::lock::Locks;
use super::log::{Change, Log};
use super::node::{Attributes, Info, Ino, Kind, Name, Page, ROOT};
use super::settled::{Settled, SettledInode};

/// Everything but the open descriptors.
pub(crate) struct State {
    pub(crate) base: Base,
    pub(crate) infos: Rc<Vec<Info>>,
    pub(crate) log: Log,
    pub(crate) locks: Locks,
    pub(crate) umask: u32,
    pub(crate) descriptions: u64,
    /// By inode; those that were not touched since the base have none.
    live: Vec<Option<Box<Live>>>,
}

/// What of an inode differs from the base.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) attributes: Option<Rc<Attributes>>,
    pub(crate) size: Option<u64>,
    pub(crate) pages: BTreeMap<u64, Page>,
    /// From this page on the base's pages are gone, because the file was truncated.
    pub(crate) base_pages: u64,
    pub(crate) entries: BTreeMap<Name, Option<Ino>>,
    /// The directory that a directory was last found in.
    pub(crate) parent: Ino,
    /// Whether a directory was removed.
    pub(crate) is_removed: bool,
}

impl Default for Live {
    fn default() -> Self {
        Self {
            attributes: None,
            size: None,
            pages: BTreeMap::new(),
            base_pages: u64::MAX,
            entries: BTreeMap::new(),
            parent: ROOT,
            is_removed: false,
        }
    }
}

impl State {
    pub(crate) fn new() -> Self {
        let attributes = Rc::new(Attributes {
            mode: 0o755,
            uid: 0,
            gid: 0,
            xattrs: BTreeMap::new(),
        });
        let root = Info {
            kind: Kind::Directory,
            created: attributes,
        };
        let base = Base::Settled(Rc::new(Settled::default()));
        Self::after_crash(base, Rc::new(vec![root]), 0o022)
    }

    pub(crate) fn after_crash(base: Base, infos: Rc<Vec<Info>>, umask: u32) -> Self {
        let mut live = Vec::new();
        live.resize_with(infos.len(), || None);
        Self {
            base,
            infos,
            log: Log::default(),
            locks: Locks::default(),
            umask,
            descriptions: 0,
            live,
        }
    }

    pub(crate) fn kind(&self, ino: Ino) -> &Kind {
        &self.infos[ino as usize].kind
    }

    pub(crate) fn is_directory(&self, ino: Ino) -> bool {
        matches!(self.kind(ino), Kind::Directory)
    }

    pub(crate) fn live(&self, ino: Ino) -> Option<&Live> {
        self.live[ino as usize].as_deref()
    }

    pub(crate) fn live_mut(&mut self, ino: Ino) -> &mut Live {
        self.live[ino as usize].get_or_insert_default()
    }

    pub(crate) fn attributes(&self, ino: Ino) -> Rc<Attributes> {
        self.live(ino)
            .and_then(|live| live.attributes.clone())
            .or_else(|| self.base.attributes(ino))
            .unwrap_or_else(|| Rc::clone(&self.infos[ino as usize].created))
    }

    pub(crate) fn set_attributes(&mut self, ino: Ino, attributes: Attributes) {
        let attributes = Rc::new(attributes);
        self.live_mut(ino).attributes = Some(Rc::clone(&attributes));
        self.log.record(Change::Attributes(ino, attributes));
    }

    pub(crate) fn entry(&self, dir: Ino, name: &OsStr) -> Option<Ino> {
        match self.live(dir).and_then(|live| live.entries.get(name)) {
            Some(target) => *target,
            None => self.base.entry(dir, name),
        }
    }

    /// Every name that may be in a directory; [`entry`](Self::entry) says whether it is.
    pub(crate) fn possible_names(&self, dir: Ino) -> BTreeSet<Name> {
        let mut names = BTreeSet::new();
        self.base.add_names(dir, &mut names);
        let live = self.live(dir).into_iter();
        names.extend(live.flat_map(|live| live.entries.keys().cloned()));
        names
    }

    pub(crate) fn is_empty(&self, dir: Ino) -> bool {
        let names = self.possible_names(dir);
        names.iter().all(|name| self.entry(dir, name).is_none())
    }

    /// Changes names in one step.
    pub(crate) fn set_entries(&mut self, names: Vec<(Ino, Name, Option<Ino>)>) {
        for (dir, name, target) in &names {
            let live = self.live_mut(*dir);
            live.entries.insert(Rc::clone(name), *target);
            if let Some(ino) = *target
                && self.is_directory(ino)
            {
                self.live_mut(ino).parent = *dir;
            }
        }
        self.log.record(Change::Names(names));
    }

    /// Makes an inode under a name.
    pub(crate) fn create(&mut self, dir: Ino, name: &OsStr, kind: Kind, mode: u32) -> Ino {
        let parent = self.attributes(dir);
        let mut created = Attributes {
            mode,
            uid: 0,
            gid: 0,
            xattrs: BTreeMap::new(),
        };
        // A set-group-ID directory hands its group on, and the bit itself to directories.
        if parent.mode & 0o2000 != 0 {
            created.gid = parent.gid;
            if matches!(kind, Kind::Directory) {
                created.mode |= 0o2000;
            }
        }
        let ino = Ino::try_from(self.infos.len()).expect("fewer than 2^32 inodes");
        let created = Rc::new(created);
        Rc::make_mut(&mut self.infos).push(Info { kind, created });
        self.live.push(None);
        self.set_entries(vec![(dir, Rc::from(name), Some(ino))]);
        ino
    }

    pub(crate) fn neighbor_commit(&mut self) {
        self.log.barrier();
    }

    pub(crate) fn settle(&mut self) {
        let Some(settled) = self.base.settled() else {
            // What an earlier crash left stays undecided; all that was done since is durable.
            self.log.sync_all();
            return;
        };
        let mut settled = Settled::clone(settled);
        for ino in 0..self.infos.len() {
            let number = Ino::try_from(ino).expect("fewer than 2^32 inodes");
            if ino == settled.inodes.len() {
                settled.inodes.push(SettledInode {
                    attributes: self.attributes(number),
                    size: 0,
                    pages: BTreeMap::new(),
                    entries: BTreeMap::new(),
                });
            }
            let Some(live) = self.live[ino].as_mut() else {
                continue;
            };
            let inode = &mut settled.inodes[ino];
            if let Some(attributes) = live.attributes.take() {
                inode.attributes = attributes;
            }
            if let Some(size) = live.size.take() {
                inode.size = size;
            }
            let kept_pages = std::mem::replace(&mut live.base_pages, u64::MAX);
            inode.pages.retain(|&index, _| index < kept_pages);
            inode.pages.append(&mut live.pages);
            for (name, target) in std::mem::take(&mut live.entries) {
                match target {
                    Some(target) => inode.entries.insert(name, target),
                    None => inode.entries.remove(&name),
                };
            }
        }
        self.base = Base::Settled(Rc::new(settled));
        self.log.clear();
    }
}
