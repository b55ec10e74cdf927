//! What happens between the opening of a directory and its lock, made to happen every time.

#![expect(
    clippy::unwrap_used,
    reason = "a helper that cannot go on fails its test"
)]

mod common;

use std::cell::{Cell, RefCell};

use atomicdir::{Options, publish, sweep};
use common::disturbed::DisturbedFs;
use common::{Scratch, pair, target};
use untorn_fs::{Completed, FlockOperation, Fs, OpKind, OsFs, TraceFs};

/// Publishes while somebody else acts right before the given lock.
fn publish_racing(scratch: &Scratch, lock: u32, somebody_else: impl Fn()) {
    let fs = DisturbedFs::racing(lock, somebody_else);
    let options = Options::default();
    let published = publish(&fs, &scratch.parent, target(), &pair("new"), &options).unwrap();
    assert!(fs.has_raced());
    assert!(published.cleanup_errors.is_empty());
    assert_eq!(scratch.live(), Some(pair("new")));
    assert_eq!(scratch.beside(), Vec::<String>::new());
}

#[test]
fn a_new_staging_directory_that_is_swept_is_made_again() {
    let scratch = Scratch::with(&pair("old"));
    publish_racing(&scratch, 0, || {
        let swept = sweep(&OsFs, &scratch.parent, target()).unwrap();
        assert_eq!(swept.removed.len(), 1);
    });
}

#[test]
fn a_new_staging_directory_that_a_sweeper_holds_is_left_to_it() {
    let scratch = Scratch::with(&pair("old"));
    let sweeper = RefCell::new(None);
    let fs = DisturbedFs::racing(0, || {
        let name = scratch.beside().remove(0);
        let dir = OsFs.open_dir(&scratch.path(&name)).unwrap();
        OsFs.flock(&dir, FlockOperation::NonBlockingLockExclusive)
            .unwrap();
        *sweeper.borrow_mut() = Some((name, dir));
    });
    let options = Options::default();
    let published = publish(&fs, &scratch.parent, target(), &pair("new"), &options).unwrap();
    assert!(published.replaced && published.cleanup_errors.is_empty());
    assert_eq!(scratch.live(), Some(pair("new")));
    let (name, _dir) = sweeper.take().unwrap();
    assert_eq!(scratch.beside(), [name]);
}

/// Publishes while somebody else acts before the live directory is locked, and asks after every
/// call from the exchange on whether a sweeper could take what was swapped out.
fn publish_and_try_to_sweep(scratch: &Scratch, somebody_else: impl Fn()) {
    let exchanged = Cell::new(false);
    let tried = Cell::new(0);
    let fs = TraceFs::new(DisturbedFs::racing(1, somebody_else), |call: &Completed| {
        exchanged.set(exchanged.get() || call.op.kind == OpKind::Renameat2);
        if exchanged.get() && !scratch.beside().is_empty() {
            let swept = sweep(&OsFs, &scratch.parent, target()).unwrap();
            assert!(swept.removed.is_empty(), "after {call}");
            tried.set(tried.get() + 1);
        }
        Ok(())
    });
    let parent = fs.root(OsFs.open_dir(&scratch.path("")).unwrap());
    let published = publish(&fs, &parent, target(), &pair("new"), &Options::default()).unwrap();
    assert!(published.replaced && published.cleanup_errors.is_empty());
    // After the exchange, the fsync of the parent, and the removal of each of the two files.
    assert_eq!(tried.get(), 4);
    assert_eq!(scratch.live(), Some(pair("new")));
    assert_eq!(scratch.beside(), Vec::<String>::new());
}

#[test]
fn the_old_tree_is_safe_from_sweepers_until_it_is_removed() {
    publish_and_try_to_sweep(&Scratch::with(&pair("old")), || ());
}

#[test]
fn a_target_that_is_replaced_before_its_lock_is_looked_at_again() {
    let scratch = Scratch::with(&pair("old"));
    publish_and_try_to_sweep(&scratch, || {
        let published = scratch.publish(&pair("other")).unwrap();
        assert!(published.cleanup_errors.is_empty());
    });
}

#[test]
fn a_target_that_vanishes_before_its_lock_is_created() {
    let scratch = Scratch::with(&pair("old"));
    publish_racing(&scratch, 1, || {
        std::fs::remove_dir_all(scratch.path("live")).unwrap();
    });
}

#[test]
fn a_staging_name_that_changes_hands_before_the_lock_is_not_swept() {
    let scratch = Scratch::with(&pair("old"));
    let name = scratch.leave_behind(1);
    let writer = RefCell::new(None);
    let fs = DisturbedFs::racing(0, || {
        std::fs::rename(scratch.path(&name), scratch.path("published")).unwrap();
        scratch.leave_behind(1);
        let dir = OsFs.open_dir(&scratch.path(&name)).unwrap();
        OsFs.flock(&dir, FlockOperation::NonBlockingLockShared)
            .unwrap();
        *writer.borrow_mut() = Some(dir);
    });
    let swept = sweep(&fs, &scratch.parent, target()).unwrap();
    assert!(fs.has_raced());
    assert!(
        swept.removed.is_empty() && swept.failed.is_empty(),
        "{swept:?}"
    );
    assert_eq!(scratch.beside(), [name.clone(), "published".to_owned()]);
    assert!(scratch.path(&name).join("stale").exists());
}
