//! The end of what a child printed.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::OFlags;
use rustix::io::Errno;

/// Bytes that are kept of each stream.
const KEPT_BYTES_MAX: usize = 64 * 1024;

/// The end of what a child printed on one stream; what came before it is counted only.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutputTail {
    bytes: VecDeque<u8>,
    omitted: u64,
}

impl OutputTail {
    /// The last bytes, 64 KiB of them at most.
    pub fn bytes(&self) -> Vec<u8> {
        self.bytes.iter().copied().collect()
    }

    /// How many bytes came before those that are kept.
    pub fn omitted_bytes(&self) -> u64 {
        self.omitted
    }

    /// True when nothing was printed.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        let excess = self.bytes.len().saturating_sub(KEPT_BYTES_MAX);
        self.bytes.drain(..excess);
        self.omitted += excess as u64;
    }
}

impl fmt::Display for OutputTail {
    /// The text without white space at its end; what is no UTF-8 is replaced.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.omitted > 0 {
            writeln!(f, "[{} bytes omitted]", self.omitted)?;
        }
        f.write_str(String::from_utf8_lossy(&self.bytes()).trim_end())
    }
}

/// Collects the tail of one stream of a child, without ever waiting for it.
#[derive(Debug)]
pub(crate) struct TailReader {
    /// None once the stream has ended.
    pipe: Option<OwnedFd>,
    tail: OutputTail,
}

impl TailReader {
    pub(crate) fn new(pipe: OwnedFd) -> io::Result<Self> {
        let flags = rustix::fs::fcntl_getfl(&pipe)?;
        rustix::fs::fcntl_setfl(&pipe, flags | OFlags::NONBLOCK)?;
        Ok(Self {
            pipe: Some(pipe),
            tail: OutputTail::default(),
        })
    }

    /// The descriptor to poll, while there is more to come.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// Reads what is there, one pipe's worth at most: a child that prints faster than this reads
    /// must not keep its harness from looking at the clock.
    pub(crate) fn drain(&mut self) {
        let mut buffer = [0_u8; 4096];
        for _ in 0..32 {
            let Some(pipe) = &self.pipe else { return };
            match rustix::io::read(pipe, &mut buffer) {
                Ok(length @ 1..) => self.tail.push(&buffer[..length]),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                // The end, or an error, after which nothing can be expected either.
                Ok(0) | Err(_) => self.pipe = None,
            }
        }
    }

    pub(crate) fn tail(&self) -> &OutputTail {
        &self.tail
    }

    pub(crate) fn into_tail(mut self) -> OutputTail {
        self.drain();
        self.tail
    }
}

#[cfg(test)]
mod tests {
    use super::OutputTail;

    #[test]
    fn only_the_end_is_kept() {
        let mut tail = OutputTail::default();
        tail.push(&b"a".repeat(70_000));
        tail.push(b"end\n");
        assert_eq!(tail.bytes().len(), 65_536);
        assert_eq!(tail.omitted_bytes(), 70_004 - 65_536);
        let text = tail.to_string();
        assert!(text.starts_with("[4468 bytes omitted]\naaa"), "{text}");
        assert!(text.ends_with("aaaend"));
    }
}
