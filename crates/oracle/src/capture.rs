//! Capturing a tree: reading relative to descriptors, following no link, writing nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::read::{attributes, content};
use crate::{Attributes, Name, Node, OtherKind, TreeSnapshot};

/// What a capture takes in. Snapshots that are compared have to be captured alike.
#[derive(Clone, Debug)]
pub struct CaptureOptions {
    /// Whether owners are captured.
    pub owner: bool,
    /// Whether extended attributes of files and directories are captured.
    pub xattrs: bool,
    /// Files up to this size are kept whole, others as a summary.
    pub content_bytes_max: usize,
    /// How much of the beginning a summary keeps.
    pub summary_prefix_bytes: usize,
}

impl Default for CaptureOptions {
    /// Neither owners nor extended attributes, and files whole up to 1 MiB.
    fn default() -> Self {
        Self {
            owner: false,
            xattrs: false,
            content_bytes_max: 1 << 20,
            summary_prefix_bytes: 1 << 16,
        }
    }
}

impl TreeSnapshot {
    /// Captures what is at a path. Only the path's last component is not followed when it is a
    /// link.
    ///
    /// Reading goes in the order of names, so that two captures of one disk ask it the same
    /// questions. Access times are left alone where the kernel permits that. What the file system
    /// cannot show for being damaged becomes [`Node::Unreadable`].
    ///
    /// # Errors
    /// Whatever keeps this process from looking and is no property of the tree: no permission, no
    /// memory, no descriptors left.
    pub fn capture(path: impl AsRef<Path>, options: &CaptureOptions) -> io::Result<Self> {
        Self::capture_at(CWD, path, options)
    }

    /// Captures what is at a path relative to a directory. See [`capture`](Self::capture).
    ///
    /// # Errors
    /// As for [`capture`](Self::capture).
    pub fn capture_at(
        directory: impl AsFd,
        path: impl AsRef<Path>,
        options: &CaptureOptions,
    ) -> io::Result<Self> {
        let (directory, path) = (directory.as_fd(), path.as_ref());
        let found = rustix::fs::statat(directory, path, AtFlags::SYMLINK_NOFOLLOW);
        if found.is_err_and(|errno| errno == Errno::NOENT) {
            return Ok(Self::missing());
        }
        let node = node(directory, &Name::from(path.as_os_str()), options);
        node.map(Self::new).map_err(io::Error::from)
    }
}

/// The names in a directory, such as those beside a target. A link is not followed.
///
/// # Errors
/// The directory cannot be opened or read.
pub fn names_in(directory: impl AsRef<Path>) -> io::Result<BTreeSet<Name>> {
    let name = Name::from(directory.as_ref().as_os_str());
    let directory = open(CWD, &name, OFlags::DIRECTORY)?;
    Ok(names(&mut Dir::new(directory)?)?)
}

/// An error of the capture itself and where it struck.
#[derive(Debug)]
struct Failure {
    path: String,
    errno: Errno,
}

impl From<Failure> for io::Error {
    fn from(Failure { path, errno }: Failure) -> Self {
        Self::new(errno.kind(), format!("cannot capture `{path}`: {errno}"))
    }
}

/// Whether an error says that the tree is damaged, and not that this process may not look.
///
/// `NOENT` is among them: a name that the directory lists and that then leads nowhere.
fn is_damage(errno: Errno) -> bool {
    // The kernel's file systems say `UCLEAN` for damaged structures and `BADMSG` for wrong
    // checksums.
    let damage = [
        Errno::IO,
        Errno::UCLEAN,
        Errno::BADMSG,
        Errno::STALE,
        Errno::NOENT,
    ];
    damage.contains(&errno)
}

fn node(directory: BorrowedFd<'_>, name: &Name, options: &CaptureOptions) -> Result<Node, Failure> {
    match read_node(directory, name, options) {
        Ok(Read::Done(node)) => Ok(node),
        Ok(Read::Directory {
            attributes,
            directory,
            names,
        }) => {
            let mut entries = BTreeMap::new();
            for entry in names {
                let below = |failure: Failure| Failure {
                    path: format!("{name}/{}", failure.path),
                    ..failure
                };
                let opened = directory.fd().map_err(|errno| fail(name, errno))?;
                let node = node(opened, &entry, options).map_err(below)?;
                entries.insert(entry, node);
            }
            Ok(Node::Directory {
                attributes,
                entries,
            })
        }
        Err(errno) if is_damage(errno) => Ok(Node::Unreadable {
            errno: errno.raw_os_error(),
        }),
        Err(errno) => Err(fail(name, errno)),
    }
}

fn fail(name: &Name, errno: Errno) -> Failure {
    Failure {
        path: name.to_string(),
        errno,
    }
}

/// A node that was read, or a directory whose entries are still to be read.
enum Read {
    Done(Node),
    Directory {
        attributes: Attributes,
        directory: Dir,
        names: BTreeSet<Name>,
    },
}

fn read_node(
    directory: BorrowedFd<'_>,
    name: &Name,
    options: &CaptureOptions,
) -> Result<Read, Errno> {
    let stat = rustix::fs::statat(directory, name.as_bytes(), AtFlags::SYMLINK_NOFOLLOW)?;
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {
            let file = open(directory, name, OFlags::NONBLOCK)?;
            let attributes = attributes(&rustix::fs::fstat(&file)?, Some(&file), options)?;
            let content = content(&file, options)?;
            return Ok(Read::Done(Node::File {
                attributes,
                content,
            }));
        }
        FileType::Directory => {
            let opened = open(directory, name, OFlags::DIRECTORY)?;
            let attributes = attributes(&rustix::fs::fstat(&opened)?, Some(&opened), options)?;
            let mut directory = Dir::new(opened)?;
            let names = names(&mut directory)?;
            return Ok(Read::Directory {
                attributes,
                directory,
                names,
            });
        }
        FileType::Symlink => {
            let target = rustix::fs::readlinkat(directory, name.as_bytes(), Vec::new())?;
            let attributes = attributes(&stat, None, options)?;
            let target = Name::from(target.into_bytes());
            return Ok(Read::Done(Node::Symlink { attributes, target }));
        }
        FileType::Fifo => OtherKind::Fifo,
        FileType::Socket => OtherKind::Socket,
        FileType::CharacterDevice => OtherKind::CharacterDevice,
        FileType::BlockDevice => OtherKind::BlockDevice,
        FileType::Unknown => OtherKind::Unknown,
    };
    Ok(Read::Done(Node::Other {
        attributes: attributes(&stat, None, options)?,
        kind,
    }))
}

/// Opens for reading without a change of the access time, which only owners may ask for.
fn open(directory: BorrowedFd<'_>, name: &Name, flags: OFlags) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = |flags| rustix::fs::openat(directory, name.as_bytes(), flags, Mode::empty());
    match open(flags | OFlags::NOATIME) {
        Err(Errno::PERM) => open(flags),
        result => result,
    }
}

fn names(directory: &mut Dir) -> Result<BTreeSet<Name>, Errno> {
    let mut names = BTreeSet::new();
    for entry in directory {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.insert(Name::from(name));
        }
    }
    Ok(names)
}
