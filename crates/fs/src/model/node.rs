//! The words of the model: inodes, names, attributes, pages.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::rc::Rc;

use crate::stat::FileKind;

/// An inode's number: its place in every table by inode.
pub(crate) type Ino = u32;

/// The root directory.
pub(crate) const ROOT: Ino = 0;

/// A name in a directory.
pub(crate) type Name = Rc<OsStr>;

/// The size of a page.
pub(crate) const PAGE_BYTES: usize = 4096;

/// A page from its beginning; what it lacks at the end is zeros.
pub(crate) type Page = Rc<[u8]>;

/// What an inode is for its whole life.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Regular,
    Directory,
    Symlink(Rc<OsStr>),
}

impl Kind {
    pub(crate) fn file_kind(&self) -> FileKind {
        match self {
            Self::Regular => FileKind::Regular,
            Self::Directory => FileKind::Directory,
            Self::Symlink(_) => FileKind::Symlink,
        }
    }
}

/// Mode, owner and extended attributes: one record, which is written as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Attributes {
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) xattrs: BTreeMap<Name, Rc<[u8]>>,
}

/// What an inode was created as.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Info {
    pub(crate) kind: Kind,
    pub(crate) created: Rc<Attributes>,
}

/// The number of a page and the place in it of a byte of a file.
pub(crate) fn page_of(offset: u64) -> (u64, usize) {
    let bytes = PAGE_BYTES as u64;
    let within = usize::try_from(offset % bytes).expect("less than a page");
    (offset / bytes, within)
}

/// Where a page begins in its file.
pub(crate) fn page_start(index: u64) -> u64 {
    index * PAGE_BYTES as u64
}

/// How many bytes of a page lie before the end of a file of that size.
pub(crate) fn bytes_before_end(index: u64, size: u64) -> usize {
    let rest = size.saturating_sub(page_start(index));
    usize::try_from(rest).map_or(PAGE_BYTES, |rest| rest.min(PAGE_BYTES))
}

/// A page without what lies behind that many bytes.
pub(crate) fn clipped(page: Page, bytes: usize) -> Page {
    if page.len() <= bytes {
        page
    } else {
        Rc::from(&page[..bytes])
    }
}

/// Whether two pages hold the same, whatever zeros they spell out.
pub(crate) fn same_page(left: &[u8], right: &[u8]) -> bool {
    let (short, long) = if left.len() < right.len() {
        (left, right)
    } else {
        (right, left)
    };
    long.starts_with(short) && long[short.len()..].iter().all(|&byte| byte == 0)
}
