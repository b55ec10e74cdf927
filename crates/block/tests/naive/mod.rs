//! What a disk may hold after a cut, by the most naive of models.
//!
//! It keeps, for each unit, every content that it ever had in the order in which it had them, and
//! knows nothing of pending writes or of a durable base that moves on.

use std::collections::BTreeSet;

use untorn_block::{BlockOp, CrashSpace};

use crate::support::{Recorded, bytes_of};

/// More states than this are not listed.
const STATES_MAX: usize = 600;

/// What may be on the disk when the power is cut just before position `cut` of the log: for each
/// unit, the contents that it may hold.
pub(crate) fn possible_contents(recorded: &Recorded, cut: usize) -> Vec<Vec<Vec<u8>>> {
    let Recorded { unit, base, log } = recorded;
    let unit = usize::try_from(*unit).expect("small");
    // Everything that was received before this position is durable.
    let durable = log.ops[..cut]
        .iter()
        .filter_map(|op| match op {
            BlockOp::FlushDone { number } => log
                .ops
                .iter()
                .position(|op| *op == BlockOp::Flush { number: *number }),
            _ => None,
        })
        .max()
        .unwrap_or(0);

    let mut live = bytes_of(base);
    let mut possible: Vec<Vec<Vec<u8>>> = live.chunks(unit).map(|held| vec![held.into()]).collect();
    for (position, op) in log.ops[..cut].iter().enumerate() {
        let (start, data) = match op {
            BlockOp::Write { offset, data } => (*offset, data.to_vec()),
            BlockOp::Discard { offset, bytes } => {
                (*offset, vec![0; usize::try_from(*bytes).expect("small")])
            }
            BlockOp::Flush { .. } | BlockOp::FlushDone { .. } | BlockOp::Mark(_) => continue,
        };
        let start = usize::try_from(start).expect("small");
        live[start..start + data.len()].copy_from_slice(&data);
        for touched in start / unit..(start + data.len()).div_ceil(unit) {
            let content = live[touched * unit..(touched + 1) * unit].to_vec();
            if position < durable {
                possible[touched] = vec![content];
            } else {
                possible[touched].push(content);
            }
        }
    }
    possible
}

/// Every combination, as whole disks; `None` when there are too many to list.
pub(crate) fn all_disks(possible: &[Vec<Vec<u8>>]) -> Option<BTreeSet<Vec<u8>>> {
    let mut disks = BTreeSet::from([Vec::new()]);
    for contents in possible {
        let distinct: BTreeSet<&Vec<u8>> = contents.iter().collect();
        disks = disks
            .iter()
            .flat_map(|disk| {
                distinct
                    .iter()
                    .map(move |next| [disk.as_slice(), next].concat())
            })
            .collect();
        if disks.len() > STATES_MAX {
            return None;
        }
    }
    Some(disks)
}

/// Every choice of a version for every unit in flight.
pub(crate) fn all_picks(space: &CrashSpace) -> Vec<Vec<(u64, u32)>> {
    let mut all = vec![Vec::new()];
    for (unit, arity) in space.arities() {
        all = all
            .iter()
            .flat_map(|picks: &Vec<(u64, u32)>| {
                (0..arity).map(move |pick| [picks.as_slice(), &[(unit, pick)]].concat())
            })
            .collect();
    }
    all
}
