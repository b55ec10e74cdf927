//! The block log: everything a disk received, in one order with marks between.

use std::sync::Arc;

/// One entry of a [`BlockLog`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockOp {
    /// Bytes were written. The entry stands where the write completed.
    Write {
        /// First byte on the disk.
        offset: u64,
        /// What was written.
        data: Arc<[u8]>,
    },
    /// A flush was issued. It covers every write that stands before it.
    Flush {
        /// Counts flushes from 0.
        number: u32,
    },
    /// A flush completed; only now is what it covers durable.
    FlushDone {
        /// Which flush.
        number: u32,
    },
    /// A range was discarded or zeroed. Modelled as a write of zeros.
    Discard {
        /// First byte on the disk.
        offset: u64,
        /// Number of bytes.
        bytes: u64,
    },
    /// Something happened outside the disk.
    Mark(Mark),
}

/// What a mark in a block log stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mark {
    /// A syscall of the subject returned; its text.
    Syscall(Arc<str>),
    /// The subject acknowledged the new generation.
    Acknowledged,
    /// The harness disturbed the run from here on.
    Disturbed,
    /// Anything else, as found in a log that others wrote.
    Other(Arc<str>),
}

/// Everything a disk received during one recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BlockLog {
    /// The entries, in one order.
    pub ops: Vec<BlockOp>,
}

impl BlockLog {
    /// Appends a mark.
    pub fn mark(&mut self, mark: Mark) {
        self.ops.push(BlockOp::Mark(mark));
    }

    /// Number of writes and discards.
    pub fn writes(&self) -> u64 {
        let is_write =
            |op: &&BlockOp| matches!(op, BlockOp::Write { .. } | BlockOp::Discard { .. });
        self.ops.iter().filter(is_write).count() as u64
    }

    /// Number of flushes that completed.
    pub fn flushes(&self) -> u64 {
        self.ops
            .iter()
            .filter(|op| matches!(op, BlockOp::FlushDone { .. }))
            .count() as u64
    }

    /// The syscall that had returned last before `position`, and the one that returned next after
    /// it, which therefore was under way or had not begun.
    pub fn syscalls_around(&self, position: usize) -> (Option<&str>, Option<&str>) {
        fn text(op: &BlockOp) -> Option<&str> {
            match op {
                BlockOp::Mark(Mark::Syscall(text)) => Some(text),
                _ => None,
            }
        }
        let position = position.min(self.ops.len());
        let before = self.ops[..position].iter().rev().find_map(text);
        let after = self.ops[position..].iter().find_map(text);
        (before, after)
    }

    /// True when the new generation had been acknowledged before `position`.
    pub fn acknowledged_before(&self, position: usize) -> bool {
        let position = position.min(self.ops.len());
        self.ops[..position].contains(&BlockOp::Mark(Mark::Acknowledged))
    }
}
