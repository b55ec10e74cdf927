//! Epochs and crash spaces (crash model, sections 1 and 2).

use std::collections::BTreeMap;
use std::sync::Arc;

use num_bigint::BigUint;

use crate::log_writes::zeros;
use crate::{BlockLog, BlockOp, Image};

/// One content that a unit in flight may hold after the cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// The content of the whole unit.
    pub data: Arc<[u8]>,
    /// Position in the block log of the write that first made it so.
    pub written_at: usize,
}

/// All crash states of one epoch: a durable base, and for each unit in flight the versions that it
/// may hold instead.
#[derive(Debug, Clone)]
pub struct CrashSpace {
    /// Bytes per unit.
    pub unit: u32,
    /// What a completed flush has made durable.
    pub base: Image,
    /// Units in flight by number, with their versions in the order in which they were written.
    /// Pick 0 is the durable content, pick `i` is `versions[i - 1]`. No version equals the durable
    /// content or another version of the same unit.
    pub in_flight: BTreeMap<u64, Vec<Version>>,
    /// Tells apart bases and versions in flight within one recording and between recordings that
    /// began with the same image.
    pub digest: [u8; 32],
}

impl CrashSpace {
    /// Number of contents that each unit in flight may hold, by unit.
    pub fn arities(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        self.in_flight.iter().map(|(unit, versions)| {
            (
                *unit,
                u32::try_from(versions.len() + 1).expect("few versions"),
            )
        })
    }

    /// Number of crash states.
    pub fn states(&self) -> BigUint {
        self.arities()
            .fold(BigUint::from(1u32), |product, (_, arity)| product * arity)
    }

    /// The content of `unit` at `pick`.
    ///
    /// # Panics
    /// When the unit has no such version.
    pub fn content(&self, unit: u64, pick: u32) -> Vec<u8> {
        if pick == 0 {
            return self
                .base
                .read_vec(unit * u64::from(self.unit), self.unit as usize);
        }
        self.in_flight[&unit][pick as usize - 1].data.to_vec()
    }

    /// The image of one crash state; units not named hold their durable content.
    pub fn state(&self, picks: impl IntoIterator<Item = (u64, u32)>) -> Image {
        let mut image = self.base.clone();
        for (unit, pick) in picks {
            image.write(unit * u64::from(self.unit), &self.content(unit, pick));
        }
        image
    }
}

/// The stretch of a block log from one completed flush to the completion of the next.
#[derive(Debug, Clone)]
pub struct Epoch {
    /// Number in the recording, from 0.
    pub index: u32,
    /// First position of the log behind the flush completion that began it.
    pub start: usize,
    /// Position of the flush completion that ends it, or the end of the log.
    pub end: usize,
    /// The crash states possible just before `end`.
    pub space: Arc<CrashSpace>,
}

struct Pending {
    position: usize,
    offset: u64,
    data: Arc<[u8]>,
}

/// Cuts a log into epochs, from an image that was durable when the recording began.
///
/// A flush makes durable what had been received when it was issued, and does so when it completes;
/// a write between the two is in flight on both sides.
pub fn epochs(base: &Image, log: &BlockLog, unit: u32) -> Vec<Epoch> {
    let mut walker = Walker {
        unit,
        base: base.clone(),
        base_digest: image_digest(base),
        pending: Vec::new(),
        epochs: Vec::new(),
        start: 0,
    };
    let mut covered: BTreeMap<u32, usize> = BTreeMap::new();
    for (position, op) in log.ops.iter().enumerate() {
        match op {
            BlockOp::Write { offset, data } => {
                walker.pending.push(Pending {
                    position,
                    offset: *offset,
                    data: data.clone(),
                });
            }
            BlockOp::Discard { offset, bytes } => {
                let bytes = usize::try_from(*bytes).expect("a discard fits in memory");
                let data = zeros(bytes);
                walker.pending.push(Pending {
                    position,
                    offset: *offset,
                    data,
                });
            }
            BlockOp::Flush { number } => {
                covered.insert(*number, position);
            }
            BlockOp::FlushDone { number } => {
                let issued = covered.remove(number).unwrap_or(position);
                walker.end_epoch(position);
                walker.make_durable(issued);
                walker.start = position + 1;
            }
            BlockOp::Mark(_) => {}
        }
    }
    walker.end_epoch(log.ops.len());
    walker.epochs
}

struct Walker {
    unit: u32,
    base: Image,
    base_digest: [u8; 32],
    pending: Vec<Pending>,
    epochs: Vec<Epoch>,
    start: usize,
}

impl Walker {
    fn end_epoch(&mut self, end: usize) {
        let in_flight = self.versions();
        let digest = space_digest(&self.base_digest, self.unit, &in_flight);
        let space = CrashSpace {
            unit: self.unit,
            base: self.base.clone(),
            in_flight,
            digest,
        };
        let index = u32::try_from(self.epochs.len()).expect("few epochs");
        self.epochs.push(Epoch {
            index,
            start: self.start,
            end,
            space: Arc::new(space),
        });
    }

    fn versions(&self) -> BTreeMap<u64, Vec<Version>> {
        let unit_bytes = u64::from(self.unit);
        let mut contents: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
        let mut versions: BTreeMap<u64, Vec<Version>> = BTreeMap::new();
        for write in &self.pending {
            let end = write.offset + write.data.len() as u64;
            for unit in write.offset / unit_bytes..end.div_ceil(unit_bytes) {
                let unit_start = unit * unit_bytes;
                let content = contents
                    .entry(unit)
                    .or_insert_with(|| self.base.read_vec(unit_start, self.unit as usize));
                let (from, to) = (
                    unit_start.max(write.offset),
                    (unit_start + unit_bytes).min(end),
                );
                content[index(from - unit_start)..index(to - unit_start)].copy_from_slice(
                    &write.data[index(from - write.offset)..index(to - write.offset)],
                );
                let known = versions.entry(unit).or_default();
                if !known.iter().any(|version| *version.data == **content) {
                    known.push(Version {
                        data: content.as_slice().into(),
                        written_at: write.position,
                    });
                }
            }
        }
        for (unit, known) in &mut versions {
            let durable = self.base.read_vec(unit * unit_bytes, self.unit as usize);
            known.retain(|version| *version.data != *durable);
        }
        versions.retain(|_, known| !known.is_empty());
        versions
    }

    fn make_durable(&mut self, issued: usize) {
        let (durable, pending): (Vec<_>, Vec<_>) = std::mem::take(&mut self.pending)
            .into_iter()
            .partition(|w| w.position < issued);
        self.pending = pending;
        for write in durable {
            let before = self.base.read_vec(write.offset, write.data.len());
            if *before == *write.data {
                continue;
            }
            self.base.write(write.offset, &write.data);
            // A chain would do, but it would tell apart bases that only differ in how they came
            // about; a sum over positions and contents does not.
            toggle(&mut self.base_digest, write.offset, &before);
            toggle(&mut self.base_digest, write.offset, &write.data);
        }
    }
}

fn index(bytes: u64) -> usize {
    usize::try_from(bytes).expect("within one write")
}

fn image_digest(image: &Image) -> [u8; 32] {
    let mut digest = [0; 32];
    for (offset, page) in image.held() {
        toggle(&mut digest, offset, page);
    }
    digest
}

/// Adds or removes each 512-byte piece at its place (the operation is its own inverse).
fn toggle(digest: &mut [u8; 32], offset: u64, data: &[u8]) {
    for (number, piece) in data.chunks(512).enumerate() {
        // Zeros count as nothing, so that a page of zeros and one never written are the same.
        if piece.iter().all(|byte| *byte == 0) {
            continue;
        }
        let mut hasher = blake3::Hasher::new();
        hasher.update(&(offset + 512 * number as u64).to_le_bytes());
        hasher.update(piece);
        for (byte, other) in digest.iter_mut().zip(hasher.finalize().as_bytes()) {
            *byte ^= other;
        }
    }
}

fn space_digest(base: &[u8; 32], unit: u32, in_flight: &BTreeMap<u64, Vec<Version>>) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(base);
    hasher.update(&unit.to_le_bytes());
    for (unit, versions) in in_flight {
        hasher.update(&unit.to_le_bytes());
        hasher.update(&(versions.len() as u64).to_le_bytes());
        for version in versions {
            hasher.update(blake3::hash(&version.data).as_bytes());
        }
    }
    *hasher.finalize().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digests(base: &Image, log: &BlockLog) -> Vec<[u8; 32]> {
        epochs(base, log, 512)
            .into_iter()
            .map(|epoch| epoch.space.digest)
            .collect()
    }

    #[test]
    fn a_space_is_known_by_the_whole_of_its_base() {
        let write = BlockOp::Write {
            offset: 512,
            data: vec![7; 512].into(),
        };
        let log = BlockLog {
            ops: vec![
                write,
                BlockOp::Flush { number: 0 },
                BlockOp::FlushDone { number: 0 },
            ],
        };
        let plain = Image::zeroed(8192);
        let mut other = plain.clone();
        // Nothing in the log touches it, as with a time that mounting wrote.
        other.write(4096, &[1]);
        for (one, two) in digests(&plain, &log).iter().zip(digests(&other, &log)) {
            assert_ne!(*one, two);
        }
        // How a base came about makes no difference, and neither do pages of zeros.
        let mut written = plain.clone();
        written.write(512, &[7; 512]);
        written.write(4096, &[1]);
        written.zero(4096, 4096);
        assert_eq!(
            digests(&plain, &log)[1],
            digests(&written, &BlockLog::default())[0]
        );
    }
}
