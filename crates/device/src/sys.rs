//! The ioctls of loop devices, block devices and file systems. All unsafe code of this crate.
#![expect(unsafe_code, reason = "ioctls have no safe interface")]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// `struct loop_info64` of `include/uapi/linux/loop.h`.
#[repr(C)]
#[derive(Clone, Copy)]
struct LoopInfo64 {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

impl LoopInfo64 {
    const ZERO: Self = Self {
        device: 0,
        inode: 0,
        rdevice: 0,
        offset: 0,
        size_limit: 0,
        number: 0,
        encrypt_type: 0,
        encrypt_key_size: 0,
        flags: 0,
        file_name: [0; 64],
        crypt_name: [0; 64],
        encrypt_key: [0; 32],
        init: [0; 2],
    };
}

/// `struct loop_config` of the same file.
#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo64,
    reserved: [u64; 8],
}

const LO_FLAGS_AUTOCLEAR: u32 = 4;
const LO_FLAGS_DIRECT_IO: u32 = 16;

mod raw {
    nix::ioctl_none_bad!(loop_ctl_get_free, 0x4C82);
    nix::ioctl_write_ptr_bad!(loop_configure, 0x4C0A, super::LoopConfig);
    nix::ioctl_read_bad!(loop_get_status64, 0x4C05, super::LoopInfo64);
    nix::ioctl_none_bad!(loop_clr_fd, 0x4C01);
    nix::ioctl_none_bad!(blkflsbuf, 0x1261);
    nix::ioctl_read!(btrfs_start_sync, 0x94, 24, u64);
    nix::ioctl_write_ptr!(btrfs_wait_sync, 0x94, 22, u64);
    nix::ioctl_write_ptr!(btrfs_forget_dev, 0x94, 5, super::BtrfsVolArgs);
}

/// `struct btrfs_ioctl_vol_args` of `include/uapi/linux/btrfs.h`.
#[repr(C)]
pub(crate) struct BtrfsVolArgs {
    fd: i64,
    name: [u8; 4088],
}

/// Number of a loop device that nobody uses (loop(4)); the kernel makes one when there is none.
pub(crate) fn loop_get_free(control: &File) -> io::Result<u32> {
    // SAFETY: the call takes no pointer, and the descriptor is open.
    let number = unsafe { raw::loop_ctl_get_free(control.as_raw_fd()) }?;
    u32::try_from(number).map_err(io::Error::other)
}

/// Binds `backing` to a loop device (loop(4), `LOOP_CONFIGURE`, since Linux 5.8): sectors of
/// `block_size` bytes, direct I/O, cleared by the kernel when the last user closes it.
pub(crate) fn loop_configure(device: &File, backing: &File, block_size: u32) -> io::Result<()> {
    let info = LoopInfo64 {
        flags: LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO,
        ..LoopInfo64::ZERO
    };
    let fd = u32::try_from(backing.as_raw_fd()).map_err(io::Error::other)?;
    let config = LoopConfig {
        fd,
        block_size,
        info,
        reserved: [0; 8],
    };
    // SAFETY: the structure has the layout that the kernel reads, and lives through the call.
    unsafe { raw::loop_configure(device.as_raw_fd(), &raw const config) }?;
    Ok(())
}

/// Number of the file system that holds the file behind a loop device, as stat(2) tells it, and
/// the file's inode (loop(4), `LOOP_GET_STATUS64`).
pub(crate) fn loop_backing_file(device: &File) -> io::Result<(u64, u64)> {
    let mut info = LoopInfo64::ZERO;
    // SAFETY: the kernel writes a structure of this layout, and it lives through the call.
    unsafe { raw::loop_get_status64(device.as_raw_fd(), &raw mut info) }?;
    Ok((info.device, info.inode))
}

/// Unbinds a loop device, at once or when its last user closes it (loop(4), `LOOP_CLR_FD`).
pub(crate) fn loop_clear(device: &File) -> io::Result<()> {
    // SAFETY: the call takes no pointer, and the descriptor is open.
    unsafe { raw::loop_clr_fd(device.as_raw_fd()) }?;
    Ok(())
}

/// Drops what the kernel has cached of a block device (`BLKFLSBUF`).
pub(crate) fn drop_cache(device: &File) -> io::Result<()> {
    // SAFETY: the call takes no pointer, and the descriptor is open.
    unsafe { raw::blkflsbuf(device.as_raw_fd()) }?;
    Ok(())
}

/// Commits the running transaction of btrfs without writing anybody's dirty data
/// (`BTRFS_IOC_START_SYNC`, `BTRFS_IOC_WAIT_SYNC`).
pub(crate) fn btrfs_commit(directory: BorrowedFd<'_>) -> io::Result<()> {
    let mut transaction = 0;
    // SAFETY: the kernel writes one u64, and the variable lives through the call.
    unsafe { raw::btrfs_start_sync(directory.as_raw_fd(), &raw mut transaction) }?;
    // SAFETY: the kernel reads one u64, and the variable lives through the call.
    unsafe { raw::btrfs_wait_sync(directory.as_raw_fd(), &raw const transaction) }?;
    Ok(())
}

/// Makes btrfs forget a device that is mounted no more (`BTRFS_IOC_FORGET_DEV`).
pub(crate) fn btrfs_forget(control: &File, device: &str) -> io::Result<()> {
    let mut arguments = BtrfsVolArgs {
        fd: 0,
        name: [0; 4088],
    };
    arguments.name[..device.len()].copy_from_slice(device.as_bytes());
    // SAFETY: the structure has the layout that the kernel reads, ends in a NUL byte, and lives
    // through the call.
    unsafe { raw::btrfs_forget_dev(control.as_raw_fd(), &raw const arguments) }?;
    Ok(())
}

/// Pages of a block device that the kernel has cached, by cachestat(2), since Linux 6.5.
pub(crate) fn cached_pages(device: &File) -> io::Result<u64> {
    const CACHESTAT: nix::libc::c_long = 451;
    // `struct cachestat_range` and `struct cachestat` of `include/uapi/linux/mman.h`; a length of 0
    // means everything.
    let range: [u64; 2] = [0, 0];
    let mut stat: [u64; 5] = [0; 5];
    // SAFETY: both structures have the layout that the kernel uses, and live through the call.
    let result = unsafe {
        nix::libc::syscall(
            CACHESTAT,
            device.as_raw_fd(),
            &raw const range,
            &raw mut stat,
            0,
        )
    };
    nix::errno::Errno::result(result)?;
    Ok(stat[0])
}
