//! What a call does, told from its arguments.

use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::libc;

use super::call::{Call, MUTATING_OPEN};
use super::path::{Last, Root, View, lower};
use super::{details, memory};

/// A call below the root, without its place in the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Described {
    /// What was asked for besides the paths. Empty if there is nothing.
    pub(crate) detail: String,
    pub(crate) path: String,
    pub(crate) second_path: Option<String>,
    pub(crate) success: Success,
}

/// What the program would be told, had the call succeeded without being made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Success {
    /// 0.
    Zero,
    /// This many bytes were written.
    Bytes(u64),
    /// It cannot be told: the result is something that only the call can give.
    Unknowable,
}

/// The working directory, as a directory descriptor.
const HERE: u64 = libc::AT_FDCWD.cast_unsigned() as u64;

/// Describes a call; None when it does not touch what lies below the root, or can only fail.
pub(crate) fn describe(
    call: Call,
    arguments: [u64; 6],
    view: View,
    root: &Root,
) -> Option<Described> {
    let [arg0, arg1, arg2, arg3, arg4, _] = arguments;
    let on = On { view, root };
    match call {
        Call::Open => on.open((HERE, arg0), arg1, arg2),
        Call::Openat => on.open((arg0, arg1), arg2, arg3),
        Call::Creat => on.open((HERE, arg0), O_CREAT_TRUNC, arg1),
        Call::Openat2 => {
            let [flags, mode, _resolve] = memory::words(view.thread, arg2)?;
            on.open((arg0, arg1), flags, mode)
        }
        Call::Mkdir | Call::Mknod => on.name((HERE, arg0), details::mode(arg1)),
        Call::Mkdirat | Call::Mknodat => on.name((arg0, arg1), details::mode(arg2)),
        Call::Write => on.write(arg0, arg2, None),
        Call::Writev => on.write(arg0, on.total(arg1, arg2)?, None),
        Call::Pwrite64 => on.write(arg0, arg2, Some(arg3)),
        // The high half of the offset is of no use where words have 64 bits.
        Call::Pwritev => on.write(arg0, on.total(arg1, arg2)?, Some(arg3)),
        Call::Pwritev2 => on.write(
            arg0,
            on.total(arg1, arg2)?,
            Some(arg3).filter(|at| *at != u64::MAX),
        ),
        Call::CopyFileRange | Call::Splice => on.copy(arg2, arg0, arg4),
        Call::Sendfile => on.copy(arg0, arg1, arg3),
        Call::Truncate => on.followed((HERE, arg0), format!("{arg1} bytes")),
        Call::Ftruncate => on.descriptor(arg0, format!("{arg1} bytes")),
        Call::Fallocate => {
            on.descriptor(arg0, format!("mode {} {arg3} bytes at {arg2}", lower(arg1)))
        }
        Call::Chmod => on.followed((HERE, arg0), details::mode(arg1)),
        Call::Fchmod => on.descriptor(arg0, details::mode(arg1)),
        Call::Fchmodat => on.followed((arg0, arg1), details::mode(arg2)),
        Call::Fchmodat2 => on.flagged((arg0, arg1), arg3, details::mode(arg2)),
        Call::Chown => on.followed((HERE, arg0), details::owner(arg1, arg2)),
        Call::Lchown => on.name((HERE, arg0), details::owner(arg1, arg2)),
        Call::Fchown => on.descriptor(arg0, details::owner(arg1, arg2)),
        Call::Fchownat => on.flagged((arg0, arg1), arg4, details::owner(arg2, arg3)),
        Call::Setxattr => on.followed((HERE, arg0), on.attribute(arg1, Some(arg3))),
        Call::Lsetxattr => on.name((HERE, arg0), on.attribute(arg1, Some(arg3))),
        Call::Fsetxattr => on.descriptor(arg0, on.attribute(arg1, Some(arg3))),
        Call::Setxattrat | Call::Removexattrat => {
            on.flagged((arg0, arg1), arg2, on.attribute(arg3, None))
        }
        Call::Removexattr => on.followed((HERE, arg0), on.attribute(arg1, None)),
        Call::Lremovexattr => on.name((HERE, arg0), on.attribute(arg1, None)),
        Call::Fremovexattr => on.descriptor(arg0, on.attribute(arg1, None)),
        Call::Utime | Call::Utimes => on.followed((HERE, arg0), String::new()),
        Call::Futimesat => on.followed((arg0, arg1), String::new()),
        Call::Utimensat => on.flagged((arg0, arg1), arg3, String::new()),
        Call::Ioctl => on.descriptor(arg0, details::ioctl(arg1)?),
        Call::Symlink => on.name((HERE, arg1), on.text(arg0)),
        Call::Symlinkat => on.name((arg1, arg2), on.text(arg0)),
        Call::Link => on.two((HERE, arg0), (HERE, arg1), Last::Keep, String::new()),
        Call::Linkat => {
            let follow = lower(arg4) & libc::AT_SYMLINK_FOLLOW != 0;
            let last = if follow { Last::Follow } else { Last::Keep };
            on.two((arg0, arg1), (arg2, arg3), last, String::new())
        }
        Call::Rename => on.two((HERE, arg0), (HERE, arg1), Last::Keep, details::rename(0)),
        Call::Renameat => on.two((arg0, arg1), (arg2, arg3), Last::Keep, details::rename(0)),
        Call::Renameat2 => on.two(
            (arg0, arg1),
            (arg2, arg3),
            Last::Keep,
            details::rename(arg4),
        ),
        Call::Unlink => on.name((HERE, arg0), String::new()),
        Call::Unlinkat if lower(arg2) & libc::AT_REMOVEDIR == 0 => {
            on.name((arg0, arg1), String::new())
        }
        Call::Unlinkat => on.name((arg0, arg1), "REMOVEDIR".to_owned()),
        Call::Rmdir => on.name((HERE, arg0), "REMOVEDIR".to_owned()),
        Call::SyncFileRange => on.descriptor(arg0, details::sync_file_range(arg3)),
        Call::Fdatasync | Call::Fsync | Call::Syncfs => on.descriptor(arg0, String::new()),
        // It is of every file system, so of this one too.
        Call::Sync => Some(described(String::new(), ".".to_owned())),
        Call::Msync => {
            let flush = lower(arg2) & libc::MS_SYNC != 0;
            let detail = if flush { "SYNC" } else { "ASYNC" };
            on.one(&view.mapping(arg0)?, detail.to_owned())
        }
        Call::Mmap => on.descriptor(arg4, String::new()),
        // They are of no file; the tracer tells of them without asking here.
        Call::IoUringSetup | Call::IoSetup => None,
    }
}

const O_CREAT_TRUNC: u64 = (libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC) as u64;

fn described(detail: String, path: String) -> Described {
    Described {
        detail,
        path,
        second_path: None,
        success: Success::Zero,
    }
}

/// A directory's descriptor and a pointer to a path.
type At = (u64, u64);

/// What the arguments of one call are about.
#[derive(Clone, Copy)]
struct On<'a> {
    view: View,
    root: &'a Root,
}

impl On<'_> {
    fn one(self, path: &Path, detail: String) -> Option<Described> {
        Some(described(detail, self.root.below(path)?))
    }

    fn descriptor(self, number: u64, detail: String) -> Option<Described> {
        self.one(&self.view.descriptor(number)?, detail)
    }

    /// The name itself, also when it is of a symbolic link.
    fn name(self, at: At, detail: String) -> Option<Described> {
        self.one(&self.view.at(at.0, at.1, Last::Keep)?, detail)
    }

    fn followed(self, at: At, detail: String) -> Option<Described> {
        self.one(&self.view.at(at.0, at.1, Last::Follow)?, detail)
    }

    fn flagged(self, at: At, flags: u64, detail: String) -> Option<Described> {
        if lower(flags) & libc::AT_SYMLINK_NOFOLLOW == 0 {
            self.followed(at, detail)
        } else {
            self.name(at, detail)
        }
    }

    fn two(self, old: At, new: At, last: Last, detail: String) -> Option<Described> {
        let old = self.view.at(old.0, old.1, last)?;
        let new = self.view.at(new.0, new.1, Last::Keep)?;
        let below = (self.root.below(&old), self.root.below(&new));
        if below == (None, None) {
            return None;
        }
        let shown = |below: Option<String>, whole: PathBuf| {
            below.unwrap_or_else(|| whole.to_string_lossy().into_owned())
        };
        Some(Described {
            second_path: Some(shown(below.1, new)),
            ..described(detail, shown(below.0, old))
        })
    }

    fn open(self, at: At, flags: u64, mode_bits: u64) -> Option<Described> {
        let flags = lower(flags);
        if flags & MUTATING_OPEN == 0 {
            return None;
        }
        let exclusive = flags & (libc::O_CREAT | libc::O_EXCL) == libc::O_CREAT | libc::O_EXCL;
        let keep = exclusive || flags & libc::O_NOFOLLOW != 0;
        let last = if keep { Last::Keep } else { Last::Follow };
        let path = self.view.at(at.0, at.1, last)?;
        Some(Described {
            success: Success::Unknowable,
            ..self.one(&path, details::open(flags, mode_bits))?
        })
    }

    fn write(self, number: u64, bytes: u64, at: Option<u64>) -> Option<Described> {
        let detail = match at {
            Some(at) => format!("{bytes} bytes at {at}"),
            None => format!("{bytes} bytes"),
        };
        let written = self.descriptor(number, detail)?;
        // What goes into a pipe or a socket below the root is in no file.
        self.view.is_regular(number).then_some(Described {
            success: Success::Bytes(bytes),
            ..written
        })
    }

    /// A copy inside the kernel. The size that is asked for may be far beyond the source's.
    fn copy(self, to: u64, from: u64, bytes: u64) -> Option<Described> {
        let written = self.write(to, bytes, None)?;
        let from = self.view.descriptor(from)?;
        let from = self
            .root
            .below(&from)
            .unwrap_or_else(|| from.to_string_lossy().into_owned());
        // Programs ask for as much as they can when they want everything.
        let detail = if bytes > 1 << 40 {
            format!("all bytes from {from} to")
        } else {
            format!("up to {bytes} bytes from {from} to")
        };
        Some(Described {
            detail,
            success: Success::Unknowable,
            ..written
        })
    }

    /// Bytes in the buffers of a vector.
    fn total(self, address: u64, count: u64) -> Option<u64> {
        let buffers = memory::buffers(self.view.thread, address, count)?;
        Some(buffers.iter().map(|[_, length]| length).sum())
    }

    fn text(self, address: u64) -> String {
        let text = memory::text(self.view.thread, address).unwrap_or_default();
        String::from_utf8_lossy(&text).into_owned()
    }

    fn attribute(self, name: u64, bytes: Option<u64>) -> String {
        let mut detail = self.text(name);
        if let Some(bytes) = bytes {
            // Writing into a string cannot fail.
            write!(detail, " {bytes} bytes").ok();
        }
        detail
    }
}

impl View {
    /// The file that is mapped at an address.
    fn mapping(self, address: u64) -> Option<PathBuf> {
        let maps = std::fs::read(format!("/proc/{}/maps", self.thread)).ok()?;
        maps.split(|byte| *byte == b'\n').find_map(|line| {
            let line = String::from_utf8_lossy(line);
            let (range, rest) = line.split_once(' ')?;
            let (from, to) = range.split_once('-')?;
            let from = u64::from_str_radix(from, 16).ok()?;
            let to = u64::from_str_radix(to, 16).ok()?;
            let path = &rest[rest.find('/')?..];
            (from..to)
                .contains(&address)
                .then(|| std::ffi::OsStr::from_bytes(path.as_bytes()).into())
        })
    }
}
