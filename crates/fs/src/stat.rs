//! What a file is and who it is: [`Stat`], [`FileKind`] and [`Identity`].

use std::fmt;

/// The type of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// A regular file.
    Regular,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A device, socket or named pipe.
    Special,
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Regular => "regular file",
            Self::Directory => "directory",
            Self::Symlink => "symlink",
            Self::Special => "device, socket or named pipe",
        })
    }
}

/// Which file it is, whatever it is called.
///
/// Holds for as long as some descriptor keeps the file open: after that the number may be given
/// to another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The device of the file system.
    pub dev: u64,
    /// The inode number.
    pub ino: u64,
}

/// What `statx` says about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// The device of the file system.
    pub dev: u64,
    /// The inode number.
    pub ino: u64,
    /// The mount it was reached through; tells bind mounts apart, which `dev` cannot. `None`
    /// before Linux 5.8 and on other systems.
    pub mount_id: Option<u64>,
    /// Whether it is the root of a mount. `None` where the kernel does not say.
    pub mount_root: Option<bool>,
    /// Its type.
    pub kind: FileKind,
    /// Permission bits, including set-id and sticky bits: `0o0000` to `0o7777`.
    pub mode: u32,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// The size in bytes.
    pub size: u64,
}

impl Stat {
    /// Which file this is.
    pub const fn identity(&self) -> Identity {
        Identity {
            dev: self.dev,
            ino: self.ino,
        }
    }
}
