//! Leftovers of the dead go, staging directories of the living stay.

#![expect(
    clippy::unwrap_used,
    reason = "a helper that cannot go on fails its test"
)]

mod common;

use std::ffi::OsString;
use std::os::unix::fs::{PermissionsExt, symlink};

use atomicdir::{Options, Swept, sweep};
use common::{Scratch, pair, target};
use untorn_fs::{FlockOperation, Fs, OsFs};

fn swept(scratch: &Scratch) -> Swept {
    let swept = sweep(&OsFs, &scratch.parent, target()).unwrap();
    assert!(swept.failed.is_empty(), "{swept:?}");
    swept
}

#[test]
fn leftovers_go_and_neighbours_stay() {
    let scratch = Scratch::with(&pair("old"));
    let mut leftovers: Vec<String> = (0..200).map(|n| scratch.leave_behind(n)).collect();
    leftovers.sort();
    let mut neighbours = vec![
        ".live.atomicdir-abc",
        ".live.atomicdir-0123456789ABCDEF",
        ".other.atomicdir-0123456789abcdef",
        "live.atomicdir-0123456789abcdef",
    ];
    for name in &neighbours {
        std::fs::create_dir(scratch.path(name)).unwrap();
    }
    // Not directories, so no writer made them.
    std::fs::write(scratch.path(".live.atomicdir-00000000000f11e0"), "").unwrap();
    symlink("live", scratch.path(".live.atomicdir-0000000000051111")).unwrap();
    neighbours.extend([
        ".live.atomicdir-00000000000f11e0",
        ".live.atomicdir-0000000000051111",
    ]);
    neighbours.sort_unstable();

    let swept = swept(&scratch);
    let leftovers: Vec<OsString> = leftovers.into_iter().map(Into::into).collect();
    assert_eq!(swept.removed, leftovers);
    assert!(swept.in_use.is_empty());
    assert_eq!(scratch.beside(), neighbours);
    assert_eq!(scratch.live(), Some(pair("old")));
}

#[test]
fn what_a_living_writer_holds_is_left_alone() {
    let scratch = Scratch::with(&pair("old"));
    let name = scratch.leave_behind(1);
    let held = OsFs.open_dir(&scratch.path(&name)).unwrap();
    OsFs.flock(&held, FlockOperation::NonBlockingLockShared)
        .unwrap();

    let first = swept(&scratch);
    assert!(first.removed.is_empty());
    assert_eq!(first.in_use, [name.as_str()]);
    assert_eq!(scratch.beside(), [name.as_str()]);
    let published = scratch.publish(&pair("new")).unwrap();
    assert!(published.cleanup_errors.is_empty());
    assert_eq!(scratch.beside(), [name.as_str()]);

    drop(held);
    assert_eq!(swept(&scratch).removed, [name.as_str()]);
    assert_eq!(scratch.beside(), Vec::<String>::new());
}

#[test]
fn a_leftover_that_its_owner_cannot_change_goes_too() {
    let scratch = Scratch::new();
    let name = scratch.leave_behind(1);
    std::fs::set_permissions(scratch.path(&name), PermissionsExt::from_mode(0o555)).unwrap();
    assert_eq!(swept(&scratch).removed, [name.as_str()]);
}

#[test]
fn without_sweep_leftovers_stay_out_of_the_target() {
    let scratch = Scratch::with(&pair("old"));
    let name = scratch.leave_behind(1);
    let options = Options {
        sweep: false,
        ..Options::default()
    };
    let published = scratch.publish_with(&pair("new"), &options).unwrap();
    assert!(published.cleanup_errors.is_empty());
    assert_eq!(scratch.live(), Some(pair("new")));
    assert_eq!(scratch.beside(), [name]);
}
