//! Reading what a tracee's pointers point to.

use std::io::IoSliceMut;

use nix::libc;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;

const PAGE_BYTES: usize = 4096;

/// Reads up to `buffer.len()` bytes; how many there were.
fn read(thread: Pid, address: usize, buffer: &mut [u8]) -> Option<usize> {
    let remote = RemoteIoVec {
        base: address,
        len: buffer.len(),
    };
    process_vm_readv(thread, &mut [IoSliceMut::new(buffer)], &[remote]).ok()
}

/// The text at an address, without its final zero byte. None when there is none, or it is longer
/// than a path can be: then the call fails as well.
pub(crate) fn text(thread: Pid, address: u64) -> Option<Vec<u8>> {
    let longest = usize::try_from(libc::PATH_MAX).ok()?;
    let mut at = usize::try_from(address).ok()?;
    let mut text = Vec::new();
    while text.len() < longest {
        // Up to the end of the page only: the next one need not be there.
        let mut chunk = [0; PAGE_BYTES];
        let chunk = &mut chunk[..PAGE_BYTES - at % PAGE_BYTES];
        let read = read(thread, at, chunk)?;
        let chunk = chunk.get(..read).filter(|chunk| !chunk.is_empty())?;
        if let Some(end) = chunk.iter().position(|byte| *byte == 0) {
            text.extend_from_slice(&chunk[..end]);
            return Some(text);
        }
        text.extend_from_slice(chunk);
        at = at.checked_add(read)?;
    }
    None
}

/// A number of 64-bit words at an address.
pub(crate) fn words<const N: usize>(thread: Pid, address: u64) -> Option<[u64; N]> {
    let mut words = [0; N];
    let mut bytes = vec![0; N * 8];
    let read = read(thread, usize::try_from(address).ok()?, &mut bytes)?;
    if read < bytes.len() {
        return None;
    }
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_ne_bytes(bytes.try_into().ok()?);
    }
    Some(words)
}

/// The buffers of a write of several: address and length of each.
pub(crate) fn buffers(thread: Pid, address: u64, count: u64) -> Option<Vec<[u64; 2]>> {
    // The kernel refuses more than UIO_MAXIOV.
    let count = count.min(1024);
    (0..count)
        .map(|number| words(thread, address.checked_add(number * 16)?))
        .collect()
}
