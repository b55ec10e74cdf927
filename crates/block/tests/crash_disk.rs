//! The lazy crash disk: whatever is read in whatever order belongs to one crash state, and the
//! choices made name it.

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use support::{DISK, bytes_of, recorded, write};
use untorn_block::{BlockLog, CrashDisk, CrashSpace, DefaultVersion, Image, UnitDecision, epochs};

/// What a kernel does to the disk.
#[derive(Debug, Clone)]
enum Access {
    Read { at: u64, bytes: usize },
    Write { at: u64, bytes: usize, fill: u8 },
}

fn access() -> impl Strategy<Value = Access> {
    let range = prop_oneof![
        (0..DISK - 1, 1..3000usize),
        (0..24u64, 1..4usize).prop_map(|(at, count)| (at * 512, count * 512)),
        (0..3u64, 1..3usize).prop_map(|(at, count)| (at * 4096, count * 4096)),
    ];
    let range = range.prop_map(|(at, bytes)| {
        let room = usize::try_from(DISK - at).expect("small");
        (at, bytes.min(room))
    });
    (range, any::<bool>(), 200..220u8).prop_map(|((at, bytes), reads, fill)| {
        if reads {
            Access::Read { at, bytes }
        } else {
            Access::Write { at, bytes, fill }
        }
    })
}

/// A crash space with something in flight, if the log has one.
fn space() -> impl Strategy<Value = Arc<CrashSpace>> {
    recorded().prop_map(|recorded| {
        let found = epochs(&recorded.base, &recorded.log, recorded.unit);
        let widest = found.iter().max_by_key(|epoch| epoch.space.in_flight.len());
        widest.expect("there is an epoch").space.clone()
    })
}

/// Versions by unit, spread by a seed.
fn seeded(seed: u64) -> impl Fn(u64, u32) -> u32 + Send + 'static {
    move |unit, versions| {
        let mixed =
            (seed ^ unit.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        u32::try_from((mixed >> 33) % u64::from(versions)).expect("small")
    }
}

fn boxed(seed: u64) -> DefaultVersion {
    Box::new(seeded(seed))
}

/// A third of the units in flight, with picks.
fn some_constraints(space: &CrashSpace, seed: u64) -> BTreeMap<u64, u32> {
    let pick = seeded(!seed);
    space
        .arities()
        .filter(|(unit, _)| pick(*unit, 3) == 0)
        .map(|(unit, arity)| (unit, pick(unit, arity)))
        .collect()
}

/// What an eager disk that began as `image` gives for the reads among the accesses.
fn eager_reads(mut image: Image, accesses: &[Access]) -> Vec<Vec<u8>> {
    let mut reads = Vec::new();
    for access in accesses {
        match access {
            Access::Read { at, bytes } => reads.push(image.read_vec(*at, *bytes)),
            Access::Write { at, bytes, fill } => image.write(*at, &vec![*fill; *bytes]),
        }
    }
    reads
}

fn lazy_reads(disk: &mut CrashDisk, accesses: &[Access]) -> Vec<Vec<u8>> {
    let mut reads = Vec::new();
    for access in accesses {
        match access {
            Access::Read { at, bytes } => {
                let mut buffer = vec![0xee; *bytes];
                disk.read(*at, &mut buffer);
                reads.push(buffer);
            }
            Access::Write { at, bytes, fill } => disk.write(*at, &vec![*fill; *bytes]),
        }
    }
    reads
}

fn picks(decisions: &[UnitDecision]) -> impl Iterator<Item = (u64, u32)> + '_ {
    decisions.iter().map(|made| (made.unit, made.pick))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn every_read_is_that_of_the_state_which_the_decisions_name(
        space in space(),
        accesses in prop::collection::vec(access(), 0..24),
        seed in any::<u64>(),
    ) {
        let constraints = some_constraints(&space, seed);
        let mut disk = CrashDisk::new(space.clone(), constraints.clone(), boxed(seed));
        let lazy = lazy_reads(&mut disk, &accesses);
        let decisions = disk.seal();

        let mut named = constraints.clone();
        for made in &decisions {
            let twice = named.insert(made.unit, made.pick);
            prop_assert_eq!(twice, None, "a unit was decided twice, or against a constraint");
            prop_assert_eq!(made.versions as usize, space.in_flight[&made.unit].len() + 1);
            prop_assert_eq!(made.pick, seeded(seed)(made.unit, made.versions));
        }
        prop_assert!(lazy == eager_reads(space.state(named.clone()), &accesses));

        // What was not decided does not matter: every state that agrees reads the same.
        for other in 0..4u64 {
            let mut agreeing: BTreeMap<u64, u32> = space
                .arities()
                .map(|(unit, arity)| (unit, seeded(other.wrapping_mul(seed | 1))(unit, arity)))
                .collect();
            agreeing.extend(named.clone());
            prop_assert!(lazy == eager_reads(space.state(agreeing), &accesses));
        }

        // The decisions taken as constraints give the run again, and it decides nothing.
        let mut again = CrashDisk::new(space.clone(), named, boxed(!seed));
        prop_assert!(lazy == lazy_reads(&mut again, &accesses));
        prop_assert_eq!(again.seal(), []);
    }

    #[test]
    fn a_read_decides_exactly_what_it_was_said_to(
        space in space(),
        accesses in prop::collection::vec(access(), 0..24),
        seed in any::<u64>(),
    ) {
        let constraints = some_constraints(&space, seed);
        let unit_bytes = u64::from(space.unit);
        let mut settled: Vec<u64> = constraints.keys().copied().collect();
        let mut expected: Vec<u64> = Vec::new();
        let mut disk = CrashDisk::new(space.clone(), constraints, boxed(seed));
        for access in &accesses {
            let (at, bytes) = match access {
                Access::Read { at, bytes } | Access::Write { at, bytes, .. } => (*at, *bytes),
            };
            let end = at + bytes as u64;
            let touched = at / unit_bytes..end.div_ceil(unit_bytes);
            let open: Vec<u64> = touched
                .filter(|unit| space.in_flight.contains_key(unit) && !settled.contains(unit))
                .collect();
            prop_assert_eq!(disk.is_undecided(at, bytes), !open.is_empty());
            for unit in open {
                let whole = unit * unit_bytes >= at && (unit + 1) * unit_bytes <= end;
                // Only a write that leaves nothing of it needs no decision.
                if matches!(access, Access::Read { .. }) || !whole {
                    expected.push(unit);
                }
                settled.push(unit);
            }
            lazy_reads(&mut disk, std::slice::from_ref(access));
            prop_assert!(!disk.is_undecided(at, bytes));
        }
        let decided: Vec<u64> = disk.seal().iter().map(|made| made.unit).collect();
        prop_assert_eq!(decided, expected);
    }

    #[test]
    fn nothing_counts_after_the_verdict(
        space in space(),
        before in prop::collection::vec(access(), 0..6),
        after in prop::collection::vec(access(), 0..12),
        seed in any::<u64>(),
    ) {
        let mut disk = CrashDisk::new(space.clone(), [], boxed(seed));
        lazy_reads(&mut disk, &before);
        prop_assert!(!disk.is_sealed());
        let decisions = disk.seal();
        prop_assert!(disk.is_sealed());
        prop_assert!(!disk.is_undecided(0, bytes_of(&space.base).len()));
        lazy_reads(&mut disk, &after);
        prop_assert_eq!(disk.seal(), decisions);
    }

    #[test]
    fn reading_everything_names_the_state_of_the_whole_disk(
        space in space(), seed in any::<u64>(), order in any::<u64>(),
    ) {
        let mut disk = CrashDisk::new(space.clone(), [], boxed(seed));
        let mut pages: Vec<u64> = (0..DISK / 512).collect();
        pages.sort_by_key(|page| seeded(order)(*page, u32::MAX));
        let mut whole = vec![0; bytes_of(&space.base).len()];
        for page in pages {
            let start = usize::try_from(page * 512).expect("small");
            disk.read(page * 512, &mut whole[start..start + 512]);
        }
        let decisions = disk.seal();
        prop_assert_eq!(decisions.len(), space.in_flight.len());
        prop_assert!(whole == bytes_of(&space.state(picks(&decisions))));
    }
}

/// A disk of zeros with ones in flight on its second unit of 512 bytes.
fn one_in_flight() -> Arc<CrashSpace> {
    let log = BlockLog {
        ops: vec![write(512, 512, 1)],
    };
    epochs(&Image::zeroed(DISK), &log, 512)[0].space.clone()
}

#[test]
fn a_full_overwrite_decides_nothing() {
    let mut disk = CrashDisk::new(one_in_flight(), [], Box::new(|_, _| 1));
    disk.write(512, &[9; 512]);
    let mut buffer = [0; 512];
    disk.read(512, &mut buffer);
    assert_eq!(buffer, [9; 512]);
    assert_eq!(disk.seal(), []);
}

#[test]
fn a_partial_overwrite_decides_first() {
    for pick in [0, 1] {
        let mut disk = CrashDisk::new(one_in_flight(), [], Box::new(move |_, _| pick));
        assert!(disk.is_undecided(600, 1));
        disk.write(512, &[9; 100]);
        assert!(!disk.is_undecided(512, 512));
        let mut buffer = [0; 512];
        disk.read(512, &mut buffer);
        assert_eq!(buffer[..100], [9; 100]);
        assert_eq!(buffer[100..], [u8::try_from(pick).expect("small"); 412]);
        let made = UnitDecision {
            unit: 1,
            versions: 2,
            pick,
        };
        assert_eq!(disk.seal(), [made]);
    }
}

#[test]
fn a_unit_with_a_constraint_asks_nobody() {
    let ask = Box::new(|unit, _| panic!("unit {unit} was asked for"));
    let mut disk = CrashDisk::new(one_in_flight(), [(1, 1)], ask);
    assert!(!disk.is_undecided(0, 4096));
    let mut buffer = [0; 1024];
    disk.read(0, &mut buffer);
    assert_eq!(buffer[512..], [1; 512]);
    assert_eq!(disk.seal(), []);
}
