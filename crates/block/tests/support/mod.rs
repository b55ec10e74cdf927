//! Small random logs.

use std::sync::Arc;

use proptest::prelude::*;
use untorn_block::{BlockLog, BlockOp, Image, Mark};

/// Bytes of the disks in these tests.
pub(crate) const DISK: u64 = 3 * 4096;

/// Bytes of a disk as a plain vector.
pub(crate) fn bytes_of(image: &Image) -> Vec<u8> {
    image.read_vec(0, usize::try_from(DISK).expect("small"))
}

/// What happens to a disk, before flushes are given their numbers.
#[derive(Debug, Clone)]
enum Step {
    Write {
        at: u64,
        bytes: u64,
        fill: u8,
    },
    Discard {
        at: u64,
        bytes: u64,
    },
    IssueFlush,
    /// Completes one of the flushes under way, if there is one.
    CompleteFlush(usize),
    Mark,
}

/// A range on a grid of 256 bytes, so that it may cover a part of a unit, or several units.
fn range(unit: u32) -> impl Strategy<Value = (u64, u64)> {
    let unit = u64::from(unit);
    let any = (0..DISK / 256, 1..=6u64).prop_map(|(at, count)| (at * 256, count * 256));
    // Units near the beginning are hit again and again.
    let whole = (0..4u64, 1..=2u64).prop_map(move |(at, count)| (at * unit, count * unit));
    let part = (0..3u64, 0..unit / 256).prop_map(move |(at, part)| (at * unit + part * 256, 256));
    prop_oneof![1 => any, 3 => whole, 2 => part]
        .prop_map(|(at, bytes)| (at.min(DISK - 256), bytes))
        .prop_map(|(at, bytes)| (at, bytes.min(DISK - at)))
}

fn step(unit: u32) -> impl Strategy<Value = Step> {
    prop_oneof![
        // Few bytes to fill with, so that contents come back.
        6 => (range(unit), 0..3u8).prop_map(|((at, bytes), fill)| Step::Write { at, bytes, fill }),
        1 => range(unit).prop_map(|(at, bytes)| Step::Discard { at, bytes }),
        2 => Just(Step::IssueFlush),
        2 => (0..3usize).prop_map(Step::CompleteFlush),
        1 => Just(Step::Mark),
    ]
}

/// A disk, its unit, and what it receives.
#[derive(Debug, Clone)]
pub(crate) struct Recorded {
    pub(crate) unit: u32,
    pub(crate) base: Image,
    pub(crate) log: BlockLog,
}

/// Random logs on disks of both unit sizes. Flushes overlap, and may complete in any order or not
/// at all.
pub(crate) fn recorded() -> impl Strategy<Value = Recorded> {
    let unit = prop_oneof![Just(512u32), Just(4096u32)];
    let steps = unit.prop_flat_map(|unit| (Just(unit), prop::collection::vec(step(unit), 0..16)));
    (steps, 0..3u8).prop_map(|((unit, steps), fill)| {
        let mut base = Image::zeroed(DISK);
        base.write(0, &vec![fill; 2048]);
        Recorded {
            unit,
            base,
            log: log_of(steps),
        }
    })
}

fn log_of(steps: Vec<Step>) -> BlockLog {
    let mut log = BlockLog::default();
    let (mut next, mut under_way) = (0, Vec::new());
    for step in steps {
        log.ops.push(match step {
            Step::Write { at, bytes, fill } => write(at, bytes, fill),
            Step::Discard { at, bytes } => BlockOp::Discard { offset: at, bytes },
            Step::IssueFlush => {
                under_way.push(next);
                next += 1;
                BlockOp::Flush { number: next - 1 }
            }
            Step::CompleteFlush(_) if under_way.is_empty() => continue,
            Step::CompleteFlush(which) => BlockOp::FlushDone {
                number: under_way.remove(which % under_way.len()),
            },
            Step::Mark => BlockOp::Mark(Mark::Syscall("call".into())),
        });
    }
    log
}

/// A write of one byte, again and again.
pub(crate) fn write(at: u64, bytes: u64, fill: u8) -> BlockOp {
    let data: Arc<[u8]> = vec![fill; usize::try_from(bytes).expect("small")].into();
    BlockOp::Write { offset: at, data }
}
