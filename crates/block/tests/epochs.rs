//! Epochs and crash spaces against a naive model of a disk with a volatile cache.

mod naive;
mod support;

use std::collections::BTreeSet;

use naive::{all_disks, all_picks, possible_contents};
use num_bigint::BigUint;
use proptest::prelude::*;
use support::{DISK, bytes_of, recorded, write};
use untorn_block::{BlockLog, BlockOp, Epoch, Image, Mark, epochs};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// The heart of the crash model: neither a state too few nor one too many, and none twice.
    #[test]
    fn an_epoch_holds_exactly_the_states_of_the_naive_model(recorded in recorded()) {
        let found = epochs(&recorded.base, &recorded.log, recorded.unit);
        for epoch in &found {
            let Some(expected) = all_disks(&possible_contents(&recorded, epoch.end)) else {
                continue;
            };
            let picks = all_picks(&epoch.space);
            prop_assert_eq!(epoch.space.states(), BigUint::from(picks.len()));
            let states: BTreeSet<Vec<u8>> = picks
                .into_iter()
                .map(|picks| bytes_of(&epoch.space.state(picks)))
                .collect();
            prop_assert_eq!(BigUint::from(states.len()), epoch.space.states(), "a state came twice");
            prop_assert!(states == expected, "epoch {} holds other states", epoch.index);
        }
    }

    /// The argument by which one space per epoch is enough.
    #[test]
    fn the_end_of_an_epoch_allows_all_that_an_earlier_cut_in_it_does(recorded in recorded()) {
        for epoch in epochs(&recorded.base, &recorded.log, recorded.unit) {
            let at_the_end = possible_contents(&recorded, epoch.end);
            for cut in epoch.start..epoch.end {
                let earlier = possible_contents(&recorded, cut);
                for (early, late) in earlier.iter().zip(&at_the_end) {
                    prop_assert!(early.iter().all(|content| late.contains(content)));
                }
            }
        }
    }

    #[test]
    fn epochs_tile_the_log_at_completed_flushes(recorded in recorded()) {
        let found = epochs(&recorded.base, &recorded.log, recorded.unit);
        let ops = &recorded.log.ops;
        let mut start = 0;
        for (number, epoch) in found.iter().enumerate() {
            prop_assert_eq!(epoch.index as usize, number);
            prop_assert_eq!(epoch.start, start);
            let is_last = number + 1 == found.len();
            if is_last {
                prop_assert_eq!(epoch.end, ops.len());
            } else {
                let ends_at_a_flush = matches!(ops[epoch.end], BlockOp::FlushDone { .. });
                prop_assert!(ends_at_a_flush);
            }
            start = epoch.end + 1;
        }
        let done = ops.iter().filter(|op| matches!(op, BlockOp::FlushDone { .. })).count();
        prop_assert_eq!(found.len(), done + 1);
    }

    #[test]
    fn versions_stand_where_they_were_written(recorded in recorded()) {
        for epoch in epochs(&recorded.base, &recorded.log, recorded.unit) {
            for (unit, versions) in &epoch.space.in_flight {
                let mut contents = vec![epoch.space.content(*unit, 0)];
                for version in versions {
                    prop_assert!(version.written_at < epoch.end);
                    let is_write = matches!(
                        recorded.log.ops[version.written_at],
                        BlockOp::Write { .. } | BlockOp::Discard { .. }
                    );
                    prop_assert!(is_write);
                    prop_assert!(!contents.contains(&version.data.to_vec()), "a version twice");
                    contents.push(version.data.to_vec());
                }
                let positions: Vec<usize> = versions.iter().map(|one| one.written_at).collect();
                prop_assert!(positions.is_sorted());
            }
        }
    }

    /// The digest is the key by which spaces are not judged twice: it must never confuse two, and
    /// should know one again however it came about. Disks only ever write whole sectors.
    #[test]
    fn digests_tell_spaces_apart_and_know_them_again(first in recorded(), other in recorded()) {
        let sectors_only = [&first, &other].into_iter().all(|recorded| {
            recorded.log.ops.iter().all(|op| match op {
                BlockOp::Write { offset, data } => offset % 512 == 0 && data.len() % 512 == 0,
                BlockOp::Discard { offset, bytes } => offset % 512 == 0 && bytes % 512 == 0,
                BlockOp::Flush { .. } | BlockOp::FlushDone { .. } | BlockOp::Mark(_) => true,
            })
        });
        // The same beginning, as the recordings of one case have it.
        let second = epochs(&first.base, &other.log, first.unit);
        let first = epochs(&first.base, &first.log, first.unit);
        for one in &first {
            for other in first.iter().chain(&second) {
                let same = one.space.digest == other.space.digest;
                prop_assert!(!same || is_same(one, other), "two spaces are confused");
                prop_assert!(same || !sectors_only || !is_same(one, other), "not known again");
            }
        }
    }
}

/// The same durable content, and the same versions in flight.
fn is_same(one: &Epoch, other: &Epoch) -> bool {
    let versions = |epoch: &Epoch| {
        let in_flight = epoch.space.in_flight.iter();
        in_flight
            .map(|(unit, versions)| {
                let contents = versions.iter().map(|version| version.data.clone());
                (*unit, contents.collect::<Vec<_>>())
            })
            .collect::<Vec<_>>()
    };
    bytes_of(&one.space.base) == bytes_of(&other.space.base) && versions(one) == versions(other)
}

fn spaces(ops: Vec<BlockOp>, unit: u32) -> Vec<Epoch> {
    epochs(&Image::zeroed(DISK), &BlockLog { ops }, unit)
}

fn in_flight(epoch: &Epoch) -> Vec<(u64, usize)> {
    let units = epoch.space.in_flight.iter();
    units
        .map(|(unit, versions)| (*unit, versions.len()))
        .collect()
}

fn flush(number: u32) -> BlockOp {
    BlockOp::Flush { number }
}

fn done(number: u32) -> BlockOp {
    BlockOp::FlushDone { number }
}

#[test]
fn a_write_between_issue_and_completion_is_in_flight_on_both_sides() {
    let ops = vec![
        write(0, 512, 1),
        flush(0),
        write(512, 512, 2),
        done(0),
        write(1024, 512, 3),
    ];
    let found = spaces(ops, 512);
    assert_eq!(in_flight(&found[0]), [(0, 1), (1, 1)]);
    assert_eq!(in_flight(&found[1]), [(1, 1), (2, 1)]);
    assert_eq!(found[1].space.base.read_vec(0, 512), [1; 512]);
    assert_eq!(found[1].space.base.read_vec(512, 512), [0; 512]);
}

#[test]
fn a_unit_rewritten_during_a_flush_keeps_its_later_version_in_flight() {
    let ops = vec![write(0, 512, 1), flush(0), write(0, 512, 2), done(0)];
    let found = spaces(ops, 512);
    assert_eq!(in_flight(&found[0]), [(0, 2)]);
    assert_eq!(in_flight(&found[1]), [(0, 1)]);
    assert_eq!(found[1].space.content(0, 0), [1; 512]);
    assert_eq!(found[1].space.content(0, 1), [2; 512]);
}

#[test]
fn a_flush_that_never_completes_makes_nothing_durable() {
    let found = spaces(vec![write(0, 512, 1), flush(0)], 512);
    assert_eq!(found.len(), 1);
    assert_eq!(in_flight(&found[0]), [(0, 1)]);
}

#[test]
fn flushes_may_complete_in_another_order_than_they_were_issued() {
    let ops = vec![
        write(0, 512, 1),
        flush(0),
        write(512, 512, 2),
        flush(1),
        done(1),
        done(0),
    ];
    let found = spaces(ops, 512);
    assert_eq!(in_flight(&found[0]), [(0, 1), (1, 1)]);
    assert_eq!(in_flight(&found[1]), []);
    assert_eq!(in_flight(&found[2]), []);
    assert_eq!(found[2].space.base.read_vec(512, 512), [2; 512]);
}

#[test]
fn what_was_durable_before_is_no_version() {
    // The second write brings the durable content back, the third writes what is there anyway.
    let ops = vec![write(0, 512, 1), write(0, 512, 0), write(512, 512, 0)];
    let found = spaces(ops, 512);
    assert_eq!(in_flight(&found[0]), [(0, 1)]);
    // Zeros come by discarding, too.
    let discarded = BlockOp::Discard {
        offset: 0,
        bytes: 8192,
    };
    assert_eq!(in_flight(&spaces(vec![discarded], 4096)[0]), []);
}

#[test]
fn one_write_is_torn_between_units_and_never_within() {
    let found = spaces(vec![write(0, 8192, 1)], 4096);
    assert_eq!(in_flight(&found[0]), [(0, 1), (1, 1)]);
    let found = spaces(vec![write(0, 8192, 1)], 512);
    assert_eq!(in_flight(&found[0]).len(), 16);
}

#[test]
fn an_empty_log_has_one_epoch_with_one_state() {
    let found = spaces(vec![BlockOp::Mark(Mark::Acknowledged)], 512);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].space.states(), BigUint::from(1u32));
}
