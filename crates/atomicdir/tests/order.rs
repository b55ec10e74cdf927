//! The exact calls, in order.

#![expect(
    clippy::unwrap_used,
    reason = "a helper that cannot go on fails its test"
)]

mod common;

use std::cell::RefCell;
use std::io;

use atomicdir::{Durability, Options, publish};
use common::{Scratch, pair, target};
use untorn_fs::{Completed, OpKind, OsFs, TraceFs};

fn trace(scratch: &Scratch, durability: Durability) -> Vec<String> {
    let calls = RefCell::new(Vec::new());
    {
        let fs = TraceFs::new(OsFs, |call: &Completed| -> io::Result<()> {
            calls.borrow_mut().push(call.to_string());
            Ok(())
        });
        let parent = fs.root(OsFs.open_dir(&scratch.path("")).unwrap());
        let options = Options {
            durability,
            token: Some(0xabc),
            ..Options::default()
        };
        let published = publish(&fs, &parent, target(), &pair("new"), &options).unwrap();
        assert!(published.cleanup_errors.is_empty());
    }
    calls.into_inner()
}

fn check(calls: &[String], expected: &str) {
    let expected = expected.replace("STAGING", ".live.atomicdir-0000000000000abc");
    let expected: Vec<&str> = expected
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .collect();
    assert_eq!(calls, expected);
}

#[test]
fn two_files_over_an_existing_target() {
    let calls = trace(&Scratch::with(&pair("old")), Durability::Fsync);
    check(
        &calls,
        "mkdirat#1 0700 STAGING
         openat#1 CREAT|EXCL 0600 STAGING/tls.crt
         write#1 15 bytes STAGING/tls.crt
         fchmod#1 0644 STAGING/tls.crt
         openat#2 CREAT|EXCL 0600 STAGING/tls.key
         write#2 7 bytes STAGING/tls.key
         fchmod#2 0600 STAGING/tls.key
         sync_file_range#1 WRITE STAGING/tls.crt
         sync_file_range#2 WRITE STAGING/tls.key
         fsync#1 STAGING/tls.crt
         fsync#2 STAGING/tls.key
         fchmod#3 0755 STAGING
         fsync#3 STAGING
         renameat2#1 EXCHANGE STAGING live
         fsync#4 .
         unlinkat#1 STAGING/tls.crt
         unlinkat#2 STAGING/tls.key
         unlinkat#3 REMOVEDIR STAGING",
    );
}

#[test]
fn two_files_to_a_missing_target_with_syncfs() {
    let calls = trace(&Scratch::new(), Durability::Syncfs);
    check(
        &calls,
        "mkdirat#1 0700 STAGING
         openat#1 CREAT|EXCL 0600 STAGING/tls.crt
         write#1 15 bytes STAGING/tls.crt
         fchmod#1 0644 STAGING/tls.crt
         openat#2 CREAT|EXCL 0600 STAGING/tls.key
         write#2 7 bytes STAGING/tls.key
         fchmod#2 0600 STAGING/tls.key
         fchmod#3 0755 STAGING
         syncfs#1 STAGING
         renameat2#1 NOREPLACE STAGING live
         fsync#1 .",
    );
}

#[test]
fn a_leftover_is_removed_only_after_the_parent_is_durable() {
    let scratch = Scratch::with(&pair("old"));
    let leftover = scratch.leave_behind(7);
    let calls = trace(&scratch, Durability::Fsync);
    assert_eq!(
        calls[..4],
        [
            "fsync#1 .".to_owned(),
            format!("unlinkat#1 {leftover}/stale"),
            format!("unlinkat#2 REMOVEDIR {leftover}"),
            "mkdirat#1 0700 .live.atomicdir-0000000000000abc".to_owned(),
        ]
    );
}

#[test]
fn syncfs_needs_two_syncs_however_many_files() {
    let scratch = Scratch::with(&pair("old"));
    let syncs = trace(&scratch, Durability::Syncfs)
        .into_iter()
        .filter(|call| {
            call.split('#')
                .next()
                .unwrap()
                .parse::<OpKind>()
                .unwrap()
                .is_sync()
        })
        .count();
    assert_eq!(syncs, 2);
}
