//! The calls that the tracer knows, whatever their numbers are.

use nix::libc;

/// A syscall that can change files, or what of them is durable, or that can do so unseen.
///
/// Matches on it have no wildcard arm, so that a new call cannot be added without the filter and
/// the description following.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    not(target_arch = "x86_64"),
    expect(dead_code, reason = "newer architectures have none of the older calls")
)]
pub(crate) enum Call {
    Open,
    Openat,
    Openat2,
    Creat,
    Mkdir,
    Mkdirat,
    Mknod,
    Mknodat,
    Write,
    Writev,
    Pwrite64,
    Pwritev,
    Pwritev2,
    CopyFileRange,
    Sendfile,
    Splice,
    Truncate,
    Ftruncate,
    Fallocate,
    Chmod,
    Fchmod,
    Fchmodat,
    Fchmodat2,
    Chown,
    Lchown,
    Fchown,
    Fchownat,
    Setxattr,
    Lsetxattr,
    Fsetxattr,
    Setxattrat,
    Removexattr,
    Lremovexattr,
    Fremovexattr,
    Removexattrat,
    Utime,
    Utimes,
    Futimesat,
    Utimensat,
    Ioctl,
    Symlink,
    Symlinkat,
    Link,
    Linkat,
    Rename,
    Renameat,
    Renameat2,
    Unlink,
    Unlinkat,
    Rmdir,
    SyncFileRange,
    Fdatasync,
    Fsync,
    Syncfs,
    Sync,
    Msync,
    Mmap,
    IoUringSetup,
    IoSetup,
}

/// When a call is of interest, as far as its arguments in registers tell. The filter can read no
/// memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Condition {
    /// Whatever the arguments.
    Always,
    /// One of the bits is set in this argument.
    AnyBit(usize, u32),
    /// This argument has one of the values.
    OneOf(usize, &'static [u32]),
    /// mmap(2): a mapping that is shared, writable, and of a file.
    SharedMapping,
}

/// Open flags with which an open changes something.
pub(crate) const MUTATING_OPEN: i32 =
    libc::O_CREAT | libc::O_TRUNC | (libc::O_TMPFILE & !libc::O_DIRECTORY);

/// Requests of ioctl(2) that change a file: FICLONE, FICLONERANGE, FIDEDUPERANGE, `FS_IOC_SETFLAGS`
/// and `FS_IOC_FSSETXATTR`, with their names.
pub(crate) const MUTATING_IOCTLS: [(u32, &str); 5] = [
    (0x4004_9409, "FICLONE"),
    (0x4020_940d, "FICLONERANGE"),
    (0xc018_9436, "FIDEDUPERANGE"),
    (0x4008_6602, "SETFLAGS"),
    (0x401c_5820, "FSSETXATTR"),
];

const MUTATING_IOCTL_NUMBERS: [u32; 5] = [
    MUTATING_IOCTLS[0].0,
    MUTATING_IOCTLS[1].0,
    MUTATING_IOCTLS[2].0,
    MUTATING_IOCTLS[3].0,
    MUTATING_IOCTLS[4].0,
];

impl Call {
    /// The word by which calls of this sort are counted, the same as that of `untorn_fs::OpKind`
    /// where there is one.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Open | Self::Openat | Self::Openat2 | Self::Creat => "openat",
            Self::Mkdir | Self::Mkdirat => "mkdirat",
            Self::Mknod | Self::Mknodat => "mknodat",
            Self::Write | Self::Writev => "write",
            Self::Pwrite64 | Self::Pwritev | Self::Pwritev2 => "pwrite",
            Self::CopyFileRange => "copy_file_range",
            Self::Sendfile => "sendfile",
            Self::Splice => "splice",
            Self::Truncate | Self::Ftruncate => "ftruncate",
            Self::Fallocate => "fallocate",
            Self::Chmod | Self::Fchmod | Self::Fchmodat | Self::Fchmodat2 => "fchmod",
            Self::Chown | Self::Lchown | Self::Fchown | Self::Fchownat => "fchown",
            Self::Setxattr | Self::Lsetxattr | Self::Fsetxattr | Self::Setxattrat => "fsetxattr",
            Self::Removexattr | Self::Lremovexattr | Self::Fremovexattr | Self::Removexattrat => {
                "fremovexattr"
            }
            Self::Utime | Self::Utimes | Self::Futimesat | Self::Utimensat => "utimensat",
            Self::Ioctl => "ioctl",
            Self::Symlink | Self::Symlinkat => "symlinkat",
            Self::Link | Self::Linkat => "linkat",
            Self::Rename | Self::Renameat | Self::Renameat2 => "renameat2",
            Self::Unlink | Self::Unlinkat | Self::Rmdir => "unlinkat",
            Self::SyncFileRange => "sync_file_range",
            Self::Fdatasync => "fdatasync",
            Self::Fsync => "fsync",
            Self::Syncfs => "syncfs",
            Self::Sync => "sync",
            Self::Msync => "msync",
            Self::Mmap => "mmap",
            Self::IoUringSetup => "io_uring_setup",
            Self::IoSetup => "io_setup",
        }
    }

    /// When the filter stops the program for it.
    pub(crate) const fn condition(self) -> Condition {
        match self {
            Self::Open => Condition::AnyBit(1, MUTATING_OPEN.cast_unsigned()),
            Self::Openat => Condition::AnyBit(2, MUTATING_OPEN.cast_unsigned()),
            Self::Ioctl => Condition::OneOf(1, &MUTATING_IOCTL_NUMBERS),
            Self::Mmap => Condition::SharedMapping,
            Self::Openat2
            | Self::Creat
            | Self::Mkdir
            | Self::Mkdirat
            | Self::Mknod
            | Self::Mknodat
            | Self::Write
            | Self::Writev
            | Self::Pwrite64
            | Self::Pwritev
            | Self::Pwritev2
            | Self::CopyFileRange
            | Self::Sendfile
            | Self::Splice
            | Self::Truncate
            | Self::Ftruncate
            | Self::Fallocate
            | Self::Chmod
            | Self::Fchmod
            | Self::Fchmodat
            | Self::Fchmodat2
            | Self::Chown
            | Self::Lchown
            | Self::Fchown
            | Self::Fchownat
            | Self::Setxattr
            | Self::Lsetxattr
            | Self::Fsetxattr
            | Self::Setxattrat
            | Self::Removexattr
            | Self::Lremovexattr
            | Self::Fremovexattr
            | Self::Removexattrat
            | Self::Utime
            | Self::Utimes
            | Self::Futimesat
            | Self::Utimensat
            | Self::Symlink
            | Self::Symlinkat
            | Self::Link
            | Self::Linkat
            | Self::Rename
            | Self::Renameat
            | Self::Renameat2
            | Self::Unlink
            | Self::Unlinkat
            | Self::Rmdir
            | Self::SyncFileRange
            | Self::Fdatasync
            | Self::Fsync
            | Self::Syncfs
            | Self::Sync
            | Self::Msync
            | Self::IoUringSetup
            | Self::IoSetup => Condition::Always,
        }
    }
}

#[cfg(test)]
mod tests {
    use untorn_fs::OpKind;

    use super::Call;

    #[test]
    fn calls_of_built_in_writers_have_the_same_words() {
        let pairs = [
            (OpKind::Openat, Call::Open),
            (OpKind::Mkdirat, Call::Mkdir),
            (OpKind::Write, Call::Writev),
            (OpKind::Pwrite, Call::Pwrite64),
            (OpKind::Ftruncate, Call::Truncate),
            (OpKind::Fchmod, Call::Chmod),
            (OpKind::Fchown, Call::Lchown),
            (OpKind::Fsetxattr, Call::Setxattr),
            (OpKind::Symlinkat, Call::Symlink),
            (OpKind::Linkat, Call::Link),
            (OpKind::Renameat2, Call::Rename),
            (OpKind::Unlinkat, Call::Rmdir),
            (OpKind::SyncFileRange, Call::SyncFileRange),
            (OpKind::Fdatasync, Call::Fdatasync),
            (OpKind::Fsync, Call::Fsync),
            (OpKind::Syncfs, Call::Syncfs),
        ];
        assert_eq!(pairs.map(|(kind, _)| kind), OpKind::ALL);
        for (kind, call) in pairs {
            assert_eq!(kind.name(), call.word());
        }
    }
}
