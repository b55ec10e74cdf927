//! The FUSE file system that serves the disk as its one file.

use std::ffi::OsStr;
use std::io;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen,
    ReplyWrite, Request, WriteFlags,
};

use crate::disk::Disk;

/// Name of the one file.
pub(crate) const FILE: &str = "disk";
/// Its inode.
pub(crate) const DISK: INodeNo = INodeNo(2);

const ROOT: INodeNo = INodeNo::ROOT;
const TTL: Duration = Duration::from_hours(1);
/// Requests that the kernel may have under way at a time. A loop device sends each as background
/// work; with fewer, reads that wait would keep others from being sent at all.
const BACKGROUND: u16 = 1024;

pub(crate) struct Server(pub(crate) Arc<Disk>);

impl Server {
    fn attributes(&self, inode: INodeNo) -> FileAttr {
        let directory = inode == ROOT;
        FileAttr {
            ino: inode,
            size: if directory { 0 } else { self.0.bytes() },
            blocks: 0,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: if directory {
                FileType::Directory
            } else {
                FileType::RegularFile
            },
            perm: if directory { 0o700 } else { 0o600 },
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }
}

impl Filesystem for Server {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Without asynchronous direct I/O the kernel sends one request at a time, and a read that
        // waits would hold up those behind it.
        config
            .add_capabilities(InitFlags::FUSE_ASYNC_DIO)
            .map_err(|_missing| {
                io::Error::other("this kernel's FUSE has no asynchronous direct I/O")
            })?;
        for set in [
            KernelConfig::set_max_background,
            KernelConfig::set_congestion_threshold,
        ] {
            if let Err(nearest) = set(config, BACKGROUND) {
                set(config, nearest)
                    .map_err(|_smaller| io::Error::other("FUSE background limit"))?;
            }
        }
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if parent == ROOT && name == FILE {
            reply.entry(&TTL, &self.attributes(DISK), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&TTL, &self.attributes(inode));
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.0.serve_read(offset, size as usize, reply);
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        self.0.serve_write(offset, data, reply);
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.0.serve_flush(reply);
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fallocate(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        _mode: i32,
        reply: ReplyEmpty,
    ) {
        // A loop device only ever punches holes or zeroes ranges.
        self.0.serve_discard(offset, length, reply);
    }
}
