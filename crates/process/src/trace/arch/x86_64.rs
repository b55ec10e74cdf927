//! x86-64.

use std::io;

use nix::libc::{self, user_regs_struct};
use nix::sys::ptrace::{getregs, setregs};
use nix::unistd::Pid;

use crate::trace::call::Call;

/// Whether commands can be traced here.
pub(crate) const SUPPORTED: bool = true;

/// `AUDIT_ARCH_X86_64`: how the kernel names this call convention to filter and tracer.
pub(crate) const AUDIT_ARCH: u32 = 0xc000_003e;

/// Numbers from here on belong to x32, another convention under the same name.
pub(crate) const FOREIGN_NUMBERS_FROM: Option<u32> = Some(0x4000_0000);

/// Number of write(2).
pub(crate) const WRITE: i64 = libc::SYS_write;

/// Number of pwrite64(2).
pub(crate) const PWRITE64: i64 = libc::SYS_pwrite64;

/// The numbers of the calls. Those that the libc crate does not know yet are from
/// `syscall_64.tbl`.
pub(crate) const CALLS: &[(i64, Call)] = &[
    (libc::SYS_open, Call::Open),
    (libc::SYS_openat, Call::Openat),
    (libc::SYS_openat2, Call::Openat2),
    (libc::SYS_creat, Call::Creat),
    (libc::SYS_mkdir, Call::Mkdir),
    (libc::SYS_mkdirat, Call::Mkdirat),
    (libc::SYS_mknod, Call::Mknod),
    (libc::SYS_mknodat, Call::Mknodat),
    (libc::SYS_write, Call::Write),
    (libc::SYS_writev, Call::Writev),
    (libc::SYS_pwrite64, Call::Pwrite64),
    (libc::SYS_pwritev, Call::Pwritev),
    (libc::SYS_pwritev2, Call::Pwritev2),
    (libc::SYS_copy_file_range, Call::CopyFileRange),
    (libc::SYS_sendfile, Call::Sendfile),
    (libc::SYS_splice, Call::Splice),
    (libc::SYS_truncate, Call::Truncate),
    (libc::SYS_ftruncate, Call::Ftruncate),
    (libc::SYS_fallocate, Call::Fallocate),
    (libc::SYS_chmod, Call::Chmod),
    (libc::SYS_fchmod, Call::Fchmod),
    (libc::SYS_fchmodat, Call::Fchmodat),
    (452, Call::Fchmodat2),
    (libc::SYS_chown, Call::Chown),
    (libc::SYS_lchown, Call::Lchown),
    (libc::SYS_fchown, Call::Fchown),
    (libc::SYS_fchownat, Call::Fchownat),
    (libc::SYS_setxattr, Call::Setxattr),
    (libc::SYS_lsetxattr, Call::Lsetxattr),
    (libc::SYS_fsetxattr, Call::Fsetxattr),
    (463, Call::Setxattrat),
    (libc::SYS_removexattr, Call::Removexattr),
    (libc::SYS_lremovexattr, Call::Lremovexattr),
    (libc::SYS_fremovexattr, Call::Fremovexattr),
    (466, Call::Removexattrat),
    (libc::SYS_utime, Call::Utime),
    (libc::SYS_utimes, Call::Utimes),
    (libc::SYS_futimesat, Call::Futimesat),
    (libc::SYS_utimensat, Call::Utimensat),
    (libc::SYS_ioctl, Call::Ioctl),
    (libc::SYS_symlink, Call::Symlink),
    (libc::SYS_symlinkat, Call::Symlinkat),
    (libc::SYS_link, Call::Link),
    (libc::SYS_linkat, Call::Linkat),
    (libc::SYS_rename, Call::Rename),
    (libc::SYS_renameat, Call::Renameat),
    (libc::SYS_renameat2, Call::Renameat2),
    (libc::SYS_unlink, Call::Unlink),
    (libc::SYS_unlinkat, Call::Unlinkat),
    (libc::SYS_rmdir, Call::Rmdir),
    (libc::SYS_sync_file_range, Call::SyncFileRange),
    (libc::SYS_fdatasync, Call::Fdatasync),
    (libc::SYS_fsync, Call::Fsync),
    (libc::SYS_syncfs, Call::Syncfs),
    (libc::SYS_sync, Call::Sync),
    (libc::SYS_msync, Call::Msync),
    (libc::SYS_mmap, Call::Mmap),
    (libc::SYS_io_uring_setup, Call::IoUringSetup),
    (libc::SYS_io_setup, Call::IoSetup),
];

/// Registers of a thread that is stopped at a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Registers(user_regs_struct);

impl Registers {
    pub(crate) fn read(thread: Pid) -> io::Result<Self> {
        Ok(Self(getregs(thread)?))
    }

    pub(crate) fn write(&self, thread: Pid) -> io::Result<()> {
        Ok(setregs(thread, self.0)?)
    }

    /// Another call, or none at all with -1.
    pub(crate) fn with_number(mut self, number: i64) -> Self {
        self.0.orig_rax = number.cast_unsigned();
        self
    }

    /// Another argument, counted from 0.
    pub(crate) fn with_argument(mut self, position: usize, value: u64) -> Self {
        let argument = match position {
            0 => &mut self.0.rdi,
            1 => &mut self.0.rsi,
            2 => &mut self.0.rdx,
            3 => &mut self.0.r10,
            4 => &mut self.0.r8,
            _ => &mut self.0.r9,
        };
        *argument = value;
        self
    }

    /// What the program gets as the result: a number, or a negative error.
    pub(crate) fn with_result(mut self, result: i64) -> Self {
        self.0.rax = result.cast_unsigned();
        self
    }
}
