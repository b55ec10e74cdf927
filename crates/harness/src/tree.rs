//! Trees through the [`Fs`] trait: [`write_tree`] and [`capture`].

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;

use untorn_fs::{FileKind, Fs, OFlags, Stat};
use untorn_oracle::{Attributes, Content, Name, Node, OtherKind, TreeSnapshot};

/// A tree that cannot be written.
#[derive(Debug)]
pub enum TreeError {
    /// It has something that is no directory, symlink or file whose whole content is known.
    Unsupported,
    /// A call failed.
    Call(io::Error),
}

impl std::fmt::Display for TreeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unsupported => f.write_str(
                "only directories, symlinks and files whose whole content is known can be written",
            ),
            Self::Call(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for TreeError {}

impl From<io::Error> for TreeError {
    fn from(error: io::Error) -> Self {
        Self::Call(error)
    }
}

/// Writes a tree under a name that is free. Nothing is synced.
///
/// # Errors
/// The tree cannot be written, or a call failed.
pub fn write_tree<F: Fs>(
    fs: &F,
    dir: &F::Fd,
    name: &OsStr,
    tree: &TreeSnapshot,
) -> Result<(), TreeError> {
    write_node(fs, dir, name, tree.root())
}

fn write_node<F: Fs>(fs: &F, dir: &F::Fd, name: &OsStr, node: &Node) -> Result<(), TreeError> {
    match node {
        Node::Missing => Ok(()),
        Node::File {
            attributes,
            content: Content::Whole(bytes),
        } => {
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY;
            let file = fs.openat(dir, name, flags, 0o600)?;
            let mut rest = bytes.as_slice();
            while !rest.is_empty() {
                rest = &rest[fs.write(&file, rest)?..];
            }
            Ok(fs.fchmod(&file, attributes.mode)?)
        }
        Node::Directory {
            attributes,
            entries,
        } => {
            fs.mkdirat(dir, name, 0o700)?;
            let inner = fs.openat(dir, name, OPEN_DIR, 0)?;
            for (name, node) in entries {
                write_node(fs, &inner, name.as_os_str(), node)?;
            }
            Ok(fs.fchmod(&inner, attributes.mode)?)
        }
        Node::Symlink { target, .. } => Ok(fs.symlinkat(target.as_os_str(), dir, name)?),
        Node::File { .. } | Node::Other { .. } | Node::Unreadable { .. } => {
            Err(TreeError::Unsupported)
        }
    }
}

const OPEN_DIR: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Captures what is under a name, in the order of names and following no link. Modes are
/// captured, owners and extended attributes are not.
///
/// # Errors
/// A call failed.
pub fn capture<F: Fs>(fs: &F, dir: &F::Fd, name: &OsStr) -> io::Result<TreeSnapshot> {
    match fs.fstatat(dir, name) {
        Ok(stat) => Ok(TreeSnapshot::new(node(fs, dir, name, &stat)?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(TreeSnapshot::missing()),
        Err(error) => Err(error),
    }
}

fn node<F: Fs>(fs: &F, dir: &F::Fd, name: &OsStr, stat: &Stat) -> io::Result<Node> {
    let attributes = Attributes::of_mode(stat.mode);
    match stat.kind {
        FileKind::Regular => {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = fs.openat(dir, name, flags, 0)?;
            let content = Content::Whole(read_all(fs, &file, stat.size)?);
            Ok(Node::File {
                attributes,
                content,
            })
        }
        FileKind::Directory => {
            let inner = fs.openat(dir, name, OPEN_DIR, 0)?;
            let mut names: Vec<_> = fs.read_dir(&inner)?;
            names.sort_by(|left, right| left.name.cmp(&right.name));
            let mut entries = BTreeMap::new();
            for entry in names {
                let stat = fs.fstatat(&inner, &entry.name)?;
                let node = node(fs, &inner, &entry.name, &stat)?;
                entries.insert(Name::from(entry.name.as_os_str()), node);
            }
            Ok(Node::Directory {
                attributes,
                entries,
            })
        }
        FileKind::Symlink => {
            let target = Name::from(fs.readlinkat(dir, name)?.as_os_str());
            Ok(Node::Symlink { attributes, target })
        }
        FileKind::Special => Ok(Node::Other {
            attributes,
            kind: OtherKind::Unknown,
        }),
    }
}

fn read_all<F: Fs>(fs: &F, file: &F::Fd, size: u64) -> io::Result<Vec<u8>> {
    let size = usize::try_from(size).map_err(|_too_large| io::ErrorKind::FileTooLarge)?;
    let mut bytes = vec![0; size];
    let mut length = 0;
    loop {
        // The file may have grown since it was asked for its size.
        if length == bytes.len() {
            bytes.resize(length + 512, 0);
        }
        match fs.read(file, &mut bytes[length..])? {
            0 => break,
            count => length += count,
        }
    }
    bytes.truncate(length);
    Ok(bytes)
}
