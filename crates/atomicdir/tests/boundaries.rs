//! An error at every boundary between two calls: the target is old or new as a whole, the report
//! is true, and publishing again converges.

#![expect(
    clippy::unwrap_used,
    reason = "a helper that cannot go on fails its test"
)]

mod common;

use atomicdir::{Durability, Options, PublishError, Published, Reason, Tree, publish};
use common::disturbed::{DisturbedFs, Fault};
use common::{Scratch, pair, target, varied};

const EIO: i32 = 5;
const TOKEN: u64 = 0x0123_4567_89ab_cdef;

#[derive(Debug, Clone, Copy)]
struct Case {
    durability: Durability,
    target_exists: bool,
    leftover: bool,
    fault: Fault,
}

impl Case {
    fn all(durability: Durability) -> Vec<Self> {
        let mut cases = Vec::new();
        for target_exists in [true, false] {
            for leftover in [true, false] {
                for fault in [Fault::Before, Fault::After] {
                    cases.push(Self {
                        durability,
                        target_exists,
                        leftover,
                        fault,
                    });
                }
            }
        }
        cases
    }

    fn old(self) -> Option<Tree> {
        self.target_exists.then(|| pair("old"))
    }

    fn prepare(self) -> Scratch {
        let scratch = match self.old() {
            Some(tree) => Scratch::with(&tree),
            None => Scratch::new(),
        };
        if self.leftover {
            scratch.leave_behind(1);
        }
        scratch
    }

    /// Runs one case with the fault at one boundary; `false` once the run is shorter than that.
    fn run(self, index: u32) -> bool {
        let scratch = self.prepare();
        let (old, new) = (self.old(), varied());
        let fs = DisturbedFs::new(self.fault, index, EIO);
        let options = Options {
            durability: self.durability,
            token: Some(TOKEN),
            ..Options::default()
        };
        let result = publish(&fs, &scratch.parent, target(), &new, &options);

        let own = format!(".{}.atomicdir-{TOKEN:016x}", common::TARGET);
        let is_new = scratch.live().as_ref() == Some(&new);
        assert!(
            is_new || scratch.live() == old,
            "{self:?} {index}: neither old nor new"
        );
        match &result {
            Ok(published) => {
                assert!(is_new, "{self:?} {index}: not published, though Ok");
                assert_eq!(published.replaced, self.target_exists);
                let left: Vec<_> = published
                    .cleanup_errors
                    .iter()
                    .map(|error| error.name.clone())
                    .collect();
                for name in scratch.beside() {
                    assert!(
                        left.iter().any(|left| *left == *name),
                        "{self:?} {index}: {name}"
                    );
                }
            }
            Err(PublishError::NotPublished { .. }) => {
                assert!(!is_new, "{self:?} {index}: published, though it says not");
                // Only the dead writer's leftover may remain.
                assert!(!scratch.beside().contains(&own), "{self:?} {index}");
            }
            Err(PublishError::DurabilityUnknown {
                seen_live,
                old_kept_at,
                ..
            }) => {
                assert!(*seen_live && is_new, "{self:?} {index}");
                let kept = old_kept_at.as_ref().map(|name| {
                    let path = scratch.path(name.to_str().unwrap());
                    Tree::load(&untorn_fs::OsFs, &untorn_fs::OsFs.open_dir(&path).unwrap()).unwrap()
                });
                assert_eq!(
                    kept, old,
                    "{self:?} {index}: the old tree is not where it says"
                );
            }
        }
        assert!(
            result.is_ok() || fs.has_failed(),
            "{self:?} {index}: {result:?}"
        );

        scratch.publish_cleanly(&new);
        fs.has_failed()
    }
}

fn break_every_boundary(durability: Durability) {
    for case in Case::all(durability) {
        let mut boundaries = 0;
        while case.run(boundaries) {
            boundaries += 1;
        }
        assert!(
            boundaries > 20,
            "{case:?}: only {boundaries} calls were made"
        );
    }
}

#[test]
fn every_boundary_leaves_old_or_new_and_a_true_report_with_fsync() {
    break_every_boundary(Durability::Fsync);
}

#[test]
fn every_boundary_leaves_old_or_new_and_a_true_report_with_syncfs() {
    break_every_boundary(Durability::Syncfs);
}

#[test]
fn an_exchange_that_took_place_is_not_made_again() {
    let scratch = Scratch::with(&pair("old"));
    let options = Options {
        token: Some(TOKEN),
        ..Options::default()
    };
    // Each call in turn is made and reports an error; the exchange is the one with which the
    // publication succeeds nevertheless.
    let mut survived = 0;
    for index in 0.. {
        let fs = DisturbedFs::new(Fault::After, index, EIO);
        let new = pair(&index.to_string());
        let result = publish(&fs, &scratch.parent, target(), &new, &options);
        if !fs.has_failed() {
            break;
        }
        if let Ok(published) = result
            && published.cleanup_errors.is_empty()
        {
            survived += 1;
            assert_eq!(scratch.live(), Some(new));
        }
    }
    assert_eq!(survived, 1);
}

/// How often an error at one call ends in a given way, whichever call that is.
fn count_with(errno: i32, target_exists: bool, is_it: fn(&Scratch, &Outcome) -> bool) -> usize {
    let mut count = 0;
    for index in 0.. {
        let scratch = if target_exists {
            Scratch::with(&pair("old"))
        } else {
            Scratch::new()
        };
        let fs = DisturbedFs::new(Fault::Before, index, errno);
        let result = publish(
            &fs,
            &scratch.parent,
            target(),
            &pair("new"),
            &Options::default(),
        );
        if !fs.has_failed() {
            break;
        }
        count += usize::from(is_it(&scratch, &result));
    }
    count
}

type Outcome = Result<Published, PublishError>;

#[test]
fn a_file_system_without_exchange_is_named() {
    const EINVAL: i32 = 22;
    const ENOSYS: i32 = 38;
    for (errno, target_exists) in [(EINVAL, true), (EINVAL, false), (ENOSYS, true)] {
        let unsupported = count_with(errno, target_exists, |scratch, result| {
            let unsupported = matches!(
                result,
                Err(PublishError::NotPublished {
                    reason: Reason::Unsupported(_),
                    ..
                })
            );
            assert!(!unsupported || scratch.beside().is_empty());
            unsupported
        });
        assert_eq!(unsupported, 1);
    }
}

#[test]
fn a_target_that_cannot_move_is_named() {
    const EXDEV: i32 = 18;
    let cross_device = count_with(EXDEV, true, |_, result| {
        matches!(
            result,
            Err(PublishError::NotPublished {
                reason: Reason::CrossDevice(_),
                ..
            })
        )
    });
    assert_eq!(cross_device, 1);
}

#[test]
fn a_target_that_changed_before_the_exchange_is_looked_at_again() {
    const EEXIST: i32 = 17;
    const ENOENT: i32 = 2;
    let clean = |scratch: &Scratch, result: &Outcome| {
        result
            .as_ref()
            .is_ok_and(|published| published.cleanup_errors.is_empty())
            && scratch.live() == Some(pair("new"))
    };
    // The first mkdirat is the other call that takes EEXIST as a reason to go on.
    assert_eq!(count_with(EEXIST, false, clean), 2);
    // The exchange; and the removal of the old directory itself, where this file system lies: a
    // missing name is as good as a removed one.
    assert_eq!(count_with(ENOENT, true, clean), 2);
}
