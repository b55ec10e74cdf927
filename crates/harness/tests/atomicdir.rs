//! The sync core holds: at every crash point, with every fault at every call, under all three
//! models of persistence.

mod common;

use std::ffi::OsStr;
use std::time::Instant;

use atomicdir::{Durability, Options, PublishError, publish};
use common::{TARGET, from_snapshot, new_tree, old_tree};
use untorn_harness::{Check, Claim, Persistence, Report, SubjectFd, SubjectFs, TreeSnapshot};

/// Publishes, and passes on what the sync core says of the outcome.
fn update(
    tree: &TreeSnapshot,
    durability: Durability,
) -> impl Fn(&SubjectFs, &SubjectFd) -> Claim + use<> {
    let tree = from_snapshot(tree);
    move |fs, parent| {
        let options = Options {
            durability,
            token: Some(7),
            ..Options::default()
        };
        match publish(fs, parent, OsStr::new(TARGET), &tree, &options) {
            Ok(_) => Claim::Durable,
            Err(PublishError::NotPublished { .. }) => Claim::Untouched,
            Err(PublishError::DurabilityUnknown { seen_live, .. }) => {
                if seen_live {
                    Claim::Live
                } else {
                    Claim::Unknown
                }
            }
        }
    }
}

fn holds(old: &TreeSnapshot, durability: Durability) -> Report {
    let new = new_tree();
    let started = Instant::now();
    let report = Check::new(TARGET, old, &new).run(update(&new, durability));
    report.assert_holds();
    let seconds = started.elapsed().as_secs_f64();
    assert!(seconds < 30.0, "{seconds:.1} s: {report}");
    report
}

#[test]
fn atomicdir_with_fsync_holds() {
    holds(&old_tree(), Durability::Fsync);
}

#[test]
fn atomicdir_with_syncfs_holds() {
    holds(&old_tree(), Durability::Syncfs);
}

#[test]
fn atomicdir_holds_where_there_was_no_target() {
    holds(&TreeSnapshot::missing(), Durability::Fsync);
    holds(&TreeSnapshot::missing(), Durability::Syncfs);
}

#[test]
fn which_syncs_of_atomicdir_are_load_bearing() {
    let (old, new) = (old_tree(), new_tree());
    let check = Check::new(TARGET, &old, &new);
    let mutants = check.mutants(update(&new, Durability::Fsync));
    for persistence in Persistence::ALL {
        let bearing = mutants.iter().filter(|m| m.is_load_bearing(persistence));
        assert!(bearing.count() > 0, "{persistence}");
    }
}
