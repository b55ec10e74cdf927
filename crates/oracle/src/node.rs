//! [`Node`]: one thing in a tree, with everything below it.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Content, Name};

/// The permission bits, with set-user-ID, set-group-ID and sticky.
pub(crate) const MODE_BITS: u32 = 0o7777;

/// What is seen at one path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Node {
    /// Nothing; only ever the root of a snapshot.
    Missing,
    /// A regular file.
    File {
        /// Mode, and more where it was asked for.
        attributes: Attributes,
        /// What it holds.
        content: Content,
    },
    /// A directory.
    Directory {
        /// Mode, and more where it was asked for.
        attributes: Attributes,
        /// What is in it.
        entries: BTreeMap<Name, Node>,
    },
    /// A symbolic link, not followed.
    Symlink {
        /// Mode, and more where it was asked for.
        attributes: Attributes,
        /// Where it points.
        target: Name,
    },
    /// Anything else that has a name.
    Other {
        /// Mode, and more where it was asked for.
        attributes: Attributes,
        /// What it is.
        kind: OtherKind,
    },
    /// Something that has a name and that the file system cannot show.
    Unreadable {
        /// The error it gave.
        errno: i32,
    },
}

/// What is compared beside type and content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attributes {
    /// The permission bits, with set-user-ID, set-group-ID and sticky.
    pub mode: u32,
    /// The owner, where the capture was asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
    /// The extended attributes, where the capture was asked for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub xattrs: Option<BTreeMap<Name, Name>>,
}

impl Attributes {
    /// A mode and nothing else.
    pub fn of_mode(mode: u32) -> Self {
        Self {
            mode: mode & MODE_BITS,
            owner: None,
            xattrs: None,
        }
    }
}

/// Who owns something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
}

/// What something is that is no file, directory or link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OtherKind {
    /// A FIFO.
    Fifo,
    /// A socket.
    Socket,
    /// A character device.
    CharacterDevice,
    /// A block device.
    BlockDevice,
    /// A type that this program does not know.
    Unknown,
}

impl OtherKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::Socket => "socket",
            Self::CharacterDevice => "character device",
            Self::BlockDevice => "block device",
            Self::Unknown => "thing of unknown type",
        }
    }
}

impl Node {
    /// A file with a mode and a content.
    pub fn file(mode: u32, content: impl Into<Vec<u8>>) -> Self {
        let content = Content::Whole(content.into());
        Self::File {
            attributes: Attributes::of_mode(mode),
            content,
        }
    }

    /// A directory with a mode and entries.
    pub fn directory<N: Into<Name>>(
        mode: u32,
        entries: impl IntoIterator<Item = (N, Self)>,
    ) -> Self {
        let entries = entries
            .into_iter()
            .map(|(name, node)| (name.into(), node))
            .collect();
        Self::Directory {
            attributes: Attributes::of_mode(mode),
            entries,
        }
    }

    /// A symbolic link; its mode is the one that Linux gives to all of them.
    pub fn symlink(target: impl Into<Name>) -> Self {
        Self::Symlink {
            attributes: Attributes::of_mode(0o777),
            target: target.into(),
        }
    }

    /// Mode, owner and extended attributes, of whatever has them.
    pub fn attributes(&self) -> Option<&Attributes> {
        match self {
            Self::File { attributes, .. }
            | Self::Directory { attributes, .. }
            | Self::Symlink { attributes, .. }
            | Self::Other { attributes, .. } => Some(attributes),
            Self::Missing | Self::Unreadable { .. } => None,
        }
    }

    /// Whether two nodes agree in type, content and link target. Of directories only the type
    /// counts: what is in them is compared path by path.
    pub(crate) fn holds_the_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Missing, Self::Missing) | (Self::Directory { .. }, Self::Directory { .. }) => {
                true
            }
            (Self::File { content: left, .. }, Self::File { content: right, .. }) => left == right,
            (Self::Symlink { target: left, .. }, Self::Symlink { target: right, .. }) => {
                left == right
            }
            (Self::Other { kind: left, .. }, Self::Other { kind: right, .. }) => left == right,
            (Self::Unreadable { errno: left }, Self::Unreadable { errno: right }) => left == right,
            _ => false,
        }
    }

    /// Whether two nodes agree in everything but, for directories, what is in them.
    pub(crate) fn is_the_same(&self, other: &Self) -> bool {
        self.holds_the_same(other) && self.attributes() == other.attributes()
    }

    /// What this is, in words.
    pub(crate) fn kind_name(&self) -> &'static str {
        match self {
            Self::Missing => "nothing",
            Self::File { .. } => "file",
            Self::Directory { .. } => "directory",
            Self::Symlink { .. } => "symbolic link",
            Self::Other { kind, .. } => kind.name(),
            Self::Unreadable { .. } => "unreadable entry",
        }
    }
}

/// The text is what a person needs to recognize it: type, size or target, mode.
impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind_name())?;
        match self {
            Self::File { content, .. } => write!(f, " of {} bytes", content.length())?,
            Self::Symlink { target, .. } => write!(f, " to {target}")?,
            Self::Unreadable { errno } => write!(f, " (error {errno})")?,
            Self::Missing | Self::Directory { .. } | Self::Other { .. } => {}
        }
        match self.attributes() {
            Some(attributes) => write!(f, ", mode {:04o}", attributes.mode),
            None => Ok(()),
        }
    }
}
