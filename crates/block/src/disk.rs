//! The lazy crash disk as a data structure (crash model, section 3).

use std::collections::HashMap;
use std::sync::Arc;

use crate::CrashSpace;

/// A choice that the disk made because somebody read a unit in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnitDecision {
    /// The unit.
    pub unit: u64,
    /// Number of contents it may hold, the durable one included.
    pub versions: u32,
    /// The content that was chosen: 0 is the durable one, then versions as they were written.
    pub pick: u32,
}

/// Chooses the version of a unit that no constraint names: (unit, number of versions) to pick.
pub type DefaultVersion = Box<dyn Fn(u64, u32) -> u32 + Send>;

/// A disk after a power cut that has not made up its mind: a unit in flight gets its version when
/// it is first read, and not before. What is written stays until [`CrashDisk::new`] begins the
/// next run.
pub struct CrashDisk {
    space: Arc<CrashSpace>,
    constraints: HashMap<u64, u32>,
    default: DefaultVersion,
    /// Units whose content is settled: decided, or overwritten.
    settled: HashMap<u64, Vec<u8>>,
    decisions: Vec<UnitDecision>,
    sealed: bool,
}

impl std::fmt::Debug for CrashDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CrashDisk")
            .field("constraints", &self.constraints.len())
            .field("settled", &self.settled.len())
            .field("decisions", &self.decisions)
            .field("sealed", &self.sealed)
            .finish_non_exhaustive()
    }
}

impl CrashDisk {
    /// An undecided disk. Units that `constraints` name hold the version it gives.
    pub fn new(
        space: Arc<CrashSpace>,
        constraints: impl IntoIterator<Item = (u64, u32)>,
        default: DefaultVersion,
    ) -> Self {
        Self {
            space,
            constraints: constraints.into_iter().collect(),
            default,
            settled: HashMap::new(),
            decisions: Vec::new(),
            sealed: false,
        }
    }

    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        self.space.base.bytes()
    }

    fn units(&self, offset: u64, bytes: usize) -> std::ops::Range<u64> {
        let unit = u64::from(self.space.unit);
        offset / unit..(offset + bytes as u64).div_ceil(unit)
    }

    /// True when answering a read of this range would make a choice.
    pub fn is_undecided(&self, offset: u64, bytes: usize) -> bool {
        self.units(offset, bytes)
            .any(|unit| self.is_unit_undecided(unit))
    }

    /// The units for which answering a read of this range would make a choice.
    pub fn undecided(&self, offset: u64, bytes: usize) -> Vec<u64> {
        let units = self.units(offset, bytes);
        units.filter(|unit| self.is_unit_undecided(*unit)).collect()
    }

    fn is_unit_undecided(&self, unit: u64) -> bool {
        !self.sealed
            && self.space.in_flight.contains_key(&unit)
            && !self.settled.contains_key(&unit)
            && !self.constraints.contains_key(&unit)
    }

    /// Settles the content of a unit in flight.
    fn settle(&mut self, unit: u64) {
        if self.settled.contains_key(&unit) {
            return;
        }
        let Some(versions) = self.space.in_flight.get(&unit) else {
            return;
        };
        let versions = u32::try_from(versions.len() + 1).expect("few versions");
        let pick = self.constraints.get(&unit).copied().unwrap_or_else(|| {
            let pick = (self.default)(unit, versions).min(versions - 1);
            if !self.sealed {
                self.decisions.push(UnitDecision {
                    unit,
                    versions,
                    pick,
                });
            }
            pick
        });
        let content = self.space.content(unit, pick);
        self.settled.insert(unit, content);
    }

    /// Fills `buffer` from `offset` on and decides what it must.
    pub fn read(&mut self, offset: u64, buffer: &mut [u8]) {
        self.space.base.read(offset, buffer);
        let unit_bytes = u64::from(self.space.unit);
        let end = offset + buffer.len() as u64;
        for unit in self.units(offset, buffer.len()) {
            self.settle(unit);
            if let Some(content) = self.settled.get(&unit) {
                let start = unit * unit_bytes;
                let (from, to) = (start.max(offset), (start + unit_bytes).min(end));
                buffer[index(from - offset)..index(to - offset)]
                    .copy_from_slice(&content[index(from - start)..index(to - start)]);
            }
        }
    }

    /// Puts `data` at `offset`. A unit that is only partly overwritten is decided first.
    pub fn write(&mut self, offset: u64, data: &[u8]) {
        let unit_bytes = u64::from(self.space.unit);
        let end = offset + data.len() as u64;
        for unit in self.units(offset, data.len()) {
            let start = unit * unit_bytes;
            let (from, to) = (start.max(offset), (start + unit_bytes).min(end));
            let part = &data[index(from - offset)..index(to - offset)];
            if part.len() == self.space.unit as usize {
                self.settled.insert(unit, part.to_vec());
                continue;
            }
            self.settle(unit);
            let base = &self.space.base;
            let bytes = self.space.unit as usize;
            let content = self
                .settled
                .entry(unit)
                .or_insert_with(|| base.read_vec(start, bytes));
            content[index(from - start)..index(to - start)].copy_from_slice(part);
        }
    }

    /// The verdict is in: what is decided from now on is noted nowhere. Returns the choices that
    /// the run made beyond its constraints, in the order in which they were made.
    pub fn seal(&mut self) -> Vec<UnitDecision> {
        self.sealed = true;
        self.decisions.clone()
    }

    /// True once the verdict is in.
    pub fn is_sealed(&self) -> bool {
        self.sealed
    }
}

fn index(bytes: u64) -> usize {
    usize::try_from(bytes).expect("within one request")
}
