//! Reading what an open file holds and who owns it, for a capture.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::os::fd::OwnedFd;

use rustix::fs::Stat;
use rustix::io::Errno;

use crate::content::zero_tail;
use crate::node::MODE_BITS;
use crate::{Attributes, CaptureOptions, Content, Name, Owner, Summary};

/// Extended attributes are read through a descriptor; links and devices have none that matter and
/// get an empty set.
pub(crate) fn attributes(
    stat: &Stat,
    opened: Option<&OwnedFd>,
    options: &CaptureOptions,
) -> Result<Attributes, Errno> {
    let owner = Owner {
        uid: stat.st_uid,
        gid: stat.st_gid,
    };
    let xattrs = || opened.map_or_else(|| Ok(BTreeMap::new()), xattrs);
    Ok(Attributes {
        mode: stat.st_mode & MODE_BITS,
        owner: options.owner.then_some(owner),
        xattrs: options.xattrs.then(xattrs).transpose()?,
    })
}

fn xattrs(file: &OwnedFd) -> Result<BTreeMap<Name, Name>, Errno> {
    let list = match sized(|buffer| rustix::fs::flistxattr(file, buffer)) {
        Err(Errno::NOTSUP) => return Ok(BTreeMap::new()),
        list => list?,
    };
    let mut xattrs = BTreeMap::new();
    for name in list
        .split(|&byte| byte == 0)
        .filter(|name| !name.is_empty())
    {
        let text = CString::new(name).map_err(|_nul| Errno::INVAL)?;
        let value = sized(|buffer| rustix::fs::fgetxattr(file, &text, buffer))?;
        xattrs.insert(Name::from(name), Name::from(value));
    }
    Ok(xattrs)
}

/// The kernel limits both lists and values of extended attributes to this.
const XATTR_BYTES_MAX: usize = 1 << 16;

fn sized(read: impl FnOnce(&mut [u8]) -> Result<usize, Errno>) -> Result<Vec<u8>, Errno> {
    let mut buffer = vec![0; XATTR_BYTES_MAX];
    let length = read(&mut buffer)?;
    buffer.truncate(length);
    Ok(buffer)
}

pub(crate) fn content(file: &OwnedFd, options: &CaptureOptions) -> Result<Content, Errno> {
    let mut bytes = Vec::new();
    let mut chunk = vec![0; 1 << 16];
    while bytes.len() <= options.content_bytes_max {
        match read(file, &mut chunk)? {
            [] => return Ok(Content::Whole(bytes)),
            more => bytes.extend_from_slice(more),
        }
    }
    let mut hasher = blake3::Hasher::new();
    hasher.update(&bytes);
    let mut tail = zero_tail(&bytes);
    loop {
        let more = read(file, &mut chunk)?;
        if more.is_empty() {
            break;
        }
        hasher.update(more);
        let zeros = zero_tail(more);
        tail = if zeros == more.len() as u64 {
            tail + zeros
        } else {
            zeros
        };
    }
    let length = hasher.count();
    bytes.truncate(options.summary_prefix_bytes);
    bytes.shrink_to_fit();
    Ok(Content::Summary(Summary {
        length,
        hash: hasher.finalize(),
        zero_tail: tail,
        prefix: bytes,
    }))
}

fn read<'a>(file: &OwnedFd, chunk: &'a mut [u8]) -> Result<&'a [u8], Errno> {
    let length = rustix::io::retry_on_intr(|| rustix::io::read(file, &mut *chunk))?;
    Ok(&chunk[..length])
}
