//! Which file a call means.
//!
//! Paths are looked up in the file system as the tracee sees it: through its own root directory,
//! working directory and descriptors, and in its mount namespace.

use std::ffi::OsStr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use nix::libc;
use nix::unistd::Pid;
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, openat, openat2, readlinkat, statat,
};
use rustix::io::Errno;

use super::memory;

/// Whether a symbolic link as the last component is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Last {
    Follow,
    Keep,
}

/// The file system as one thread sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View {
    pub(crate) thread: Pid,
}

impl View {
    fn link(self, name: &str) -> Option<PathBuf> {
        let link = format!("/proc/{}/{name}", self.thread);
        let target = readlinkat(CWD, link, Vec::new()).ok()?;
        Some(PathBuf::from(OsStr::from_bytes(target.as_bytes())))
    }

    /// The path of an open descriptor; ` (deleted)` at its end when it has none any more.
    pub(crate) fn descriptor(self, number: u64) -> Option<PathBuf> {
        self.link(&format!("fd/{}", lower(number)))
    }

    /// Whether a descriptor is of a regular file.
    pub(crate) fn is_regular(self, number: u64) -> bool {
        let link = format!("/proc/{}/fd/{}", self.thread, lower(number));
        statat(CWD, link, AtFlags::empty())
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile)
    }

    /// The file that a directory descriptor and a pointer to a path mean. None when the call can
    /// only fail. Without a path, or with an empty one, it is the descriptor itself.
    pub(crate) fn at(self, directory: u64, path: u64, last: Last) -> Option<PathBuf> {
        let text = if path == 0 {
            Vec::new()
        } else {
            memory::text(self.thread, path)?
        };
        if text.is_empty() {
            return self.directory(directory);
        }
        let path = Path::new(OsStr::from_bytes(&text));
        if last == Last::Follow
            && let Some(number) = own_descriptor(path)
        {
            return self.descriptor(number);
        }
        let root = self.link("root")?;
        let whole = if path.is_absolute() {
            path.to_owned()
        } else {
            let base = self.directory(directory)?;
            // Where the thread has a root of its own, links of /proc still count from ours.
            Path::new("/")
                .join(base.strip_prefix(&root).unwrap_or(&base))
                .join(path)
        };
        Some(
            self.resolve(&whole, last)
                .unwrap_or_else(|| root.join(lexical(&whole).strip_prefix("/").unwrap_or(&whole))),
        )
    }

    fn directory(self, number: u64) -> Option<PathBuf> {
        if lower(number) == libc::AT_FDCWD {
            self.link("cwd")
        } else {
            self.descriptor(number)
        }
    }

    /// The path without symbolic links, of a file that is there or could be created.
    pub(crate) fn resolve(self, path: &Path, last: Last) -> Option<PathBuf> {
        let link = format!("/proc/{}/root", self.thread);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = openat(CWD, link, flags, Mode::empty()).ok()?;
        let mut path = path.to_owned();
        // As many links as the kernel follows.
        for _ in 0..40 {
            if last == Last::Follow {
                match lookup(&root, &path, OFlags::empty()) {
                    Ok(found) => return whereabouts(&found),
                    Err(Errno::NOENT) => {}
                    Err(_) => return None,
                }
            }
            let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
                // It ends in `..`, or is the top.
                return whereabouts(&lookup(&root, &path, OFlags::empty()).ok()?);
            };
            let parent = lookup(&root, parent, OFlags::DIRECTORY).ok()?;
            let whole = whereabouts(&parent)?;
            match readlinkat(&parent, name, Vec::new()) {
                // A link to nothing: opened to create, its target is created.
                Ok(target) if last == Last::Follow => {
                    let inside = whole.strip_prefix(self.link("root")?).unwrap_or(&whole);
                    let target = Path::new(OsStr::from_bytes(target.as_bytes()));
                    path = Path::new("/").join(inside).join(target);
                }
                _ => return Some(whole.join(name)),
            }
        }
        None
    }
}

/// Opens a path to name it only, links followed below `root`.
fn lookup(root: &OwnedFd, path: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let flags = flags | OFlags::PATH | OFlags::CLOEXEC;
    // A rename elsewhere at the same time can make the kernel ask for another try.
    for _ in 0..16 {
        match openat2(root, path, flags, Mode::empty(), ResolveFlags::IN_ROOT) {
            Err(Errno::AGAIN) => {}
            result => return result,
        }
    }
    Err(Errno::AGAIN)
}

/// The path of an own descriptor.
fn whereabouts(found: &OwnedFd) -> Option<PathBuf> {
    let link = format!("/proc/self/fd/{}", found.as_raw_fd());
    let target = readlinkat(CWD, link, Vec::new()).ok()?;
    Some(PathBuf::from(OsStr::from_bytes(target.as_bytes())))
}

/// The descriptor that a path such as /proc/self/fd/3 means; it is of the tracee's, not of ours.
fn own_descriptor(path: &Path) -> Option<u64> {
    let text = path.to_str()?;
    let number = text
        .strip_prefix("/proc/self/fd/")
        .or_else(|| text.strip_prefix("/proc/thread-self/fd/"))
        .or_else(|| text.strip_prefix("/dev/fd/"))?;
    number.parse().ok()
}

/// The path as its text alone tells.
fn lexical(path: &Path) -> PathBuf {
    let mut result = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                result.pop();
            }
            Component::CurDir => {}
            other => result.push(other),
        }
    }
    result
}

/// Descriptors are 32-bit numbers; what a register has above them means nothing.
pub(crate) const fn lower(number: u64) -> i32 {
    #[expect(clippy::cast_possible_truncation, reason = "the kernel does so itself")]
    let lower = number as u32;
    lower.cast_signed()
}

/// The directory below which calls count.
#[derive(Debug, Clone)]
pub(crate) struct Root(PathBuf);

impl Root {
    /// The directory, as the tracee sees it.
    pub(crate) fn new(view: View, path: &Path) -> Self {
        Self(
            view.resolve(path, Last::Follow)
                .unwrap_or_else(|| path.to_owned()),
        )
    }

    /// The path below the root, for a reader; `.` for the root itself. None outside.
    pub(crate) fn below(&self, path: &Path) -> Option<String> {
        let relative = path.strip_prefix(&self.0).ok()?.to_string_lossy();
        Some(if relative.is_empty() {
            ".".to_owned()
        } else {
            relative.into_owned()
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use nix::unistd::Pid;

    use super::{Last, Root, View, lexical, lower, own_descriptor};

    #[test]
    fn text_alone_is_enough_where_nothing_is_there() {
        assert_eq!(lexical(Path::new("/a/./b/../c")), PathBuf::from("/a/c"));
        assert_eq!(own_descriptor(Path::new("/proc/self/fd/7")), Some(7));
        assert_eq!(own_descriptor(Path::new("/proc/self/fd/7/x")), None);
        assert_eq!(lower(0xffff_ff9c), -100);
        assert_eq!(lower(u64::MAX - 99), -100);
    }

    #[test]
    fn links_are_followed_to_what_is_meant() {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path().canonicalize().unwrap();
        std::fs::create_dir(top.join("real")).unwrap();
        std::os::unix::fs::symlink("real", top.join("link")).unwrap();
        std::os::unix::fs::symlink("real/missing", top.join("dangling")).unwrap();
        let view = View {
            thread: Pid::this(),
        };
        let at = |path: &str, last| view.resolve(&top.join(path), last);
        assert_eq!(at("link/new", Last::Keep), Some(top.join("real/new")));
        assert_eq!(at("link", Last::Follow), Some(top.join("real")));
        assert_eq!(at("link", Last::Keep), Some(top.join("link")));
        let missing = Some(top.join("real/missing"));
        assert_eq!(at("dangling", Last::Follow), missing);
        assert_eq!(at("link/..", Last::Keep), Some(top.clone()));
        assert_eq!(at("missing/new", Last::Keep), None);

        let root = Root::new(view, &top.join("link"));
        assert_eq!(root.below(&top.join("real")), Some(".".to_owned()));
        assert_eq!(root.below(&top.join("real/a")), Some("a".to_owned()));
        assert_eq!(root.below(&top), None);
    }
}
