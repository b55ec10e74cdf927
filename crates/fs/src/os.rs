//! The real file system: [`OsFs`].

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use rustix::fs::{self, AtFlags, FileType, FlockOperation, Mode, OFlags, RawMode};

use crate::fs::{DirEntry, Fs, RemoveKind, RenameMode};
use crate::stat::{FileKind, Stat};
use crate::sys;

/// The operating system's file system, one syscall per method.
///
/// Written for Linux. It compiles on other Unix systems as far as they have the calls; the rest
/// answer `ENOSYS`. On Apple systems `fsync` asks for `F_FULLFSYNC`, because plain `fsync` does
/// not reach the disk there (fsync(2) of macOS).
#[derive(Debug, Clone, Copy, Default)]
pub struct OsFs;

impl OsFs {
    /// Opens a directory by path, to be the one that names are relative to.
    ///
    /// # Errors
    /// As openat(2); `ENOTDIR` if it is none.
    pub fn open_dir(&self, path: &Path) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(fs::open(path, flags, Mode::empty())?)
    }
}

impl Fs for OsFs {
    type Fd = OwnedFd;

    fn openat(&self, dir: &OwnedFd, name: &OsStr, flags: OFlags, mode: u32) -> io::Result<OwnedFd> {
        // Every descriptor is closed on exec: a child that kept one would keep its lock as well.
        Ok(fs::openat(
            dir,
            name,
            flags | OFlags::CLOEXEC,
            mode_bits(mode),
        )?)
    }

    fn mkdirat(&self, dir: &OwnedFd, name: &OsStr, mode: u32) -> io::Result<()> {
        Ok(fs::mkdirat(dir, name, mode_bits(mode))?)
    }

    fn read(&self, fd: &OwnedFd, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::read(fd, buffer)?)
    }

    fn write(&self, fd: &OwnedFd, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::write(fd, bytes)?)
    }

    fn pwrite(&self, fd: &OwnedFd, bytes: &[u8], offset: u64) -> io::Result<usize> {
        Ok(rustix::io::pwrite(fd, bytes, offset)?)
    }

    fn ftruncate(&self, fd: &OwnedFd, size: u64) -> io::Result<()> {
        Ok(fs::ftruncate(fd, size)?)
    }

    fn fchmod(&self, fd: &OwnedFd, mode: u32) -> io::Result<()> {
        Ok(fs::fchmod(fd, mode_bits(mode))?)
    }

    fn fchown(&self, fd: &OwnedFd, uid: Option<u32>, gid: Option<u32>) -> io::Result<()> {
        Ok(fs::fchown(
            fd,
            uid.map(fs::Uid::from_raw),
            gid.map(fs::Gid::from_raw),
        )?)
    }

    fn fsetxattr(&self, fd: &OwnedFd, attribute: &OsStr, value: &[u8]) -> io::Result<()> {
        #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
        return Ok(fs::fsetxattr(
            fd,
            attribute,
            value,
            fs::XattrFlags::empty(),
        )?);
        #[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
        return unsupported((fd, attribute, value));
    }

    fn symlinkat(&self, target: &OsStr, dir: &OwnedFd, name: &OsStr) -> io::Result<()> {
        Ok(fs::symlinkat(target, dir, name)?)
    }

    fn linkat(
        &self,
        old_dir: &OwnedFd,
        old_name: &OsStr,
        new_dir: &OwnedFd,
        new_name: &OsStr,
    ) -> io::Result<()> {
        Ok(fs::linkat(
            old_dir,
            old_name,
            new_dir,
            new_name,
            AtFlags::empty(),
        )?)
    }

    fn renameat2(
        &self,
        old_dir: &OwnedFd,
        old_name: &OsStr,
        new_dir: &OwnedFd,
        new_name: &OsStr,
        mode: RenameMode,
    ) -> io::Result<()> {
        #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
        {
            let flags = match mode {
                RenameMode::Replace => fs::RenameFlags::empty(),
                RenameMode::NoReplace => fs::RenameFlags::NOREPLACE,
                RenameMode::Exchange => fs::RenameFlags::EXCHANGE,
            };
            Ok(fs::renameat_with(
                old_dir, old_name, new_dir, new_name, flags,
            )?)
        }
        #[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
        match mode {
            RenameMode::Replace => Ok(fs::renameat(old_dir, old_name, new_dir, new_name)?),
            RenameMode::NoReplace | RenameMode::Exchange => unsupported(mode),
        }
    }

    fn unlinkat(&self, dir: &OwnedFd, name: &OsStr, kind: RemoveKind) -> io::Result<()> {
        let flags = match kind {
            RemoveKind::File => AtFlags::empty(),
            RemoveKind::Directory => AtFlags::REMOVEDIR,
        };
        Ok(fs::unlinkat(dir, name, flags)?)
    }

    fn sync_file_range(&self, fd: &OwnedFd) -> io::Result<()> {
        sys::start_write_back(fd.as_fd())
    }

    fn fdatasync(&self, fd: &OwnedFd) -> io::Result<()> {
        #[cfg(target_vendor = "apple")]
        return Ok(fs::fcntl_fullfsync(fd)?);
        #[cfg(not(target_vendor = "apple"))]
        return Ok(fs::fdatasync(fd)?);
    }

    fn fsync(&self, fd: &OwnedFd) -> io::Result<()> {
        #[cfg(target_vendor = "apple")]
        return Ok(fs::fcntl_fullfsync(fd)?);
        #[cfg(not(target_vendor = "apple"))]
        return Ok(fs::fsync(fd)?);
    }

    fn syncfs(&self, fd: &OwnedFd) -> io::Result<()> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        return Ok(fs::syncfs(fd)?);
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        return unsupported(fd);
    }

    fn fstat(&self, fd: &OwnedFd) -> io::Result<Stat> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if let Some(stat) = statx(fd, OsStr::new(""), AtFlags::EMPTY_PATH)? {
            return Ok(stat);
        }
        Ok(without_mount(&fs::fstat(fd)?))
    }

    fn fstatat(&self, dir: &OwnedFd, name: &OsStr) -> io::Result<Stat> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if let Some(stat) = statx(dir, name, AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT)? {
            return Ok(stat);
        }
        Ok(without_mount(&fs::statat(
            dir,
            name,
            AtFlags::SYMLINK_NOFOLLOW,
        )?))
    }

    fn readlinkat(&self, dir: &OwnedFd, name: &OsStr) -> io::Result<OsString> {
        Ok(OsString::from_vec(
            fs::readlinkat(dir, name, Vec::new())?.into_bytes(),
        ))
    }

    fn read_dir(&self, dir: &OwnedFd) -> io::Result<Vec<DirEntry>> {
        let mut entries = Vec::new();
        // This opens a description of its own, so the position of `dir` does not matter.
        for entry in fs::Dir::read_from(dir)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let kind = match entry.file_type() {
                // Some file systems do not keep types in directories (getdents(2), DT_UNKNOWN).
                FileType::Unknown => self.fstatat(dir, name)?.kind,
                known => file_kind(known),
            };
            entries.push(DirEntry {
                name: name.to_owned(),
                kind,
            });
        }
        Ok(entries)
    }

    fn flock(&self, fd: &OwnedFd, operation: FlockOperation) -> io::Result<()> {
        Ok(fs::flock(fd, operation)?)
    }
}

/// Asks `statx`; `None` if the kernel (before 4.11) or a sandbox does not have it.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn statx(fd: &OwnedFd, name: &OsStr, flags: AtFlags) -> io::Result<Option<Stat>> {
    use rustix::fs::{StatxAttributes, StatxFlags};

    let wanted = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
    let found = match fs::statx(fd, name, flags, wanted) {
        Ok(found) => found,
        Err(rustix::io::Errno::NOSYS) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let given = StatxFlags::from_bits_retain(found.stx_mask);
    let says_mount_root = found
        .stx_attributes_mask
        .contains(StatxAttributes::MOUNT_ROOT);
    let mode = RawMode::from(found.stx_mode);
    Ok(Some(Stat {
        dev: fs::makedev(found.stx_dev_major, found.stx_dev_minor),
        ino: found.stx_ino,
        mount_id: given
            .contains(StatxFlags::MNT_ID)
            .then_some(found.stx_mnt_id),
        mount_root: says_mount_root
            .then(|| found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT)),
        kind: file_kind(FileType::from_raw_mode(mode)),
        mode: mode & 0o7777,
        uid: found.stx_uid,
        gid: found.stx_gid,
        size: found.stx_size,
    }))
}

/// What plain `stat` can tell. Its field types differ between systems; the casts keep every bit.
#[allow(
    clippy::unnecessary_cast,
    clippy::cast_sign_loss,
    clippy::cast_lossless,
    reason = "the field types differ between systems"
)]
fn without_mount(found: &fs::Stat) -> Stat {
    Stat {
        dev: found.st_dev as u64,
        ino: found.st_ino as u64,
        mount_id: None,
        mount_root: None,
        kind: file_kind(FileType::from_raw_mode(found.st_mode as RawMode)),
        mode: found.st_mode as u32 & 0o7777,
        uid: found.st_uid as u32,
        gid: found.st_gid as u32,
        size: found.st_size as u64,
    }
}

fn file_kind(file_type: FileType) -> FileKind {
    match file_type {
        FileType::RegularFile => FileKind::Regular,
        FileType::Directory => FileKind::Directory,
        FileType::Symlink => FileKind::Symlink,
        FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => FileKind::Special,
    }
}

#[allow(
    clippy::unnecessary_cast,
    clippy::cast_possible_truncation,
    reason = "the raw mode is narrower on some systems, and permission bits fit everywhere"
)]
fn mode_bits(mode: u32) -> Mode {
    Mode::from_raw_mode((mode & 0o7777) as RawMode)
}

/// The answer for a call that this system does not have.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[allow(dead_code, reason = "which calls are missing depends on the system")]
fn unsupported<A>(_arguments: A) -> io::Result<()> {
    Err(rustix::io::Errno::NOSYS.into())
}
