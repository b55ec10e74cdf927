//! Mounting, and what a mounted file system is asked beyond plain calls.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::Path;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use untorn_spec::{FsKind, Profile};

use crate::sys;

/// Name of the directory in the top of the file system in which neighbours are made.
pub const NEIGHBOR: &str = ".untorn-neighbor";

/// Mounts `device` at `directory` as the profile says. The kernel replays its journal.
///
/// # Errors
/// The error of mount(2): with a damaged file system often EUCLEAN, EIO or EINVAL.
pub fn mount_profile(device: &Path, directory: &Path, profile: &Profile) -> io::Result<()> {
    // Two copies of one image may be mounted at a time, one per worker, and xfs refuses a second
    // file system of the same identifier.
    let options = match (profile.fs, profile.mount_options) {
        (FsKind::Xfs, "") => "nouuid".to_owned(),
        (FsKind::Xfs, more) => format!("nouuid,{more}"),
        (FsKind::Ext4 | FsKind::Btrfs, options) => options.to_owned(),
    };
    let data = (!options.is_empty()).then_some(options.as_str());
    mount(
        Some(device),
        directory,
        Some(profile.fs.name()),
        MsFlags::empty(),
        data,
    )?;
    Ok(())
}

/// Unmounts `directory`.
///
/// # Errors
/// Those of umount(2); EBUSY while a process uses it.
pub fn unmount(directory: &Path) -> io::Result<()> {
    umount2(directory, MntFlags::empty())?;
    Ok(())
}

/// Commits the journal, with what others did so far, without writing their data: creates a file
/// of its own and fsyncs it, or commits the transaction on btrfs, where the fsync of one file
/// commits nothing of another (kernel-facts, section 14).
///
/// # Errors
/// Those of the calls.
pub fn neighbor_commit(top: &Path, fs: FsKind) -> io::Result<()> {
    match fs {
        FsKind::Ext4 | FsKind::Xfs => {
            let mut file = File::create(top.join(NEIGHBOR).join("file"))?;
            file.write_all(b"neighbour\n")?;
            file.sync_all()
        }
        FsKind::Btrfs => sys::btrfs_commit(File::open(top)?.as_fd()),
    }
}

/// Drops what the kernel has cached of a block device that is not mounted.
///
/// # Errors
/// Those of the ioctl.
pub fn drop_cache(device: &File) -> io::Result<()> {
    sys::drop_cache(device)
}

/// Pages of a block device that the kernel has cached. After [`drop_cache`] there are none, unless
/// a file system that was unmounted still holds some: then the next mount would not see the disk.
/// `None` where the kernel does not tell (before Linux 6.5).
pub fn cached_pages(device: &File) -> Option<u64> {
    sys::cached_pages(device).ok()
}

/// Makes btrfs forget a device that is mounted no more, so that older kernels accept another copy
/// of the same image. No error when it does not know the device.
///
/// # Errors
/// When `/dev/btrfs-control` is missing.
pub fn forget(device: &Path) -> io::Result<()> {
    let control = File::options()
        .read(true)
        .write(true)
        .open("/dev/btrfs-control")?;
    match sys::btrfs_forget(&control, &device.to_string_lossy()) {
        Ok(()) => Ok(()),
        Err(error) if error.raw_os_error() == Some(nix::libc::ENOENT) => Ok(()),
        Err(error) => Err(error),
    }
}
