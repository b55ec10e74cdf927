//! What a publication does and refuses, on the real file system.

mod common;

use std::ffi::OsStr;
use std::os::unix::fs::symlink;
use std::path::Path;

use atomicdir::{NameError, Options, PublishError, Reason, TargetError, Tree, publish};
use common::{Scratch, TARGET, pair, target, varied};
use untorn_fs::{FileKind, OsFs};

/// Publishes where it must be refused, with nothing touched.
fn refused(scratch: &Scratch, name: &str, tree: &Tree) -> Reason {
    let before = (scratch.live(), scratch.beside());
    let result = publish(
        &OsFs,
        &scratch.parent,
        OsStr::new(name),
        tree,
        &Options::default(),
    );
    assert_eq!((scratch.live(), scratch.beside()), before);
    match result {
        Err(PublishError::NotPublished {
            reason,
            cleanup_errors,
        }) => {
            assert!(cleanup_errors.is_empty());
            reason
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_missing_target_is_created_and_an_existing_one_replaced() {
    let scratch = Scratch::new();
    assert!(!scratch.publish_cleanly(&pair("a")));
    assert!(scratch.publish_cleanly(&varied()));
    assert!(scratch.publish_cleanly(&Tree::new(0o700)));
    assert!(scratch.publish_cleanly(&varied()));
}

#[test]
fn more_files_than_are_kept_open() {
    let mut tree = Tree::new(0o755);
    for number in 0..300 {
        tree.file(format!("file-{number}"), 0o644, number.to_string());
    }
    Scratch::new().publish_cleanly(&tree);
}

#[test]
fn files_that_left_the_tree_are_gone() {
    let scratch = Scratch::with(&pair("old"));
    let mut tree = Tree::new(0o755);
    tree.file("tls.crt", 0o644, "alone");
    scratch.publish_cleanly(&tree);
}

#[test]
fn name_traps_are_refused() {
    let scratch = Scratch::with(&pair("old"));
    let long = "x".repeat(256);
    for (name, expected) in [
        ("", NameError::Empty),
        (".", NameError::Dot),
        ("..", NameError::Dot),
        ("/", NameError::Slash),
        ("live/", NameError::Slash),
        ("li\0ve", NameError::Nul),
        (
            &long,
            NameError::TooLong {
                bytes: 256,
                bytes_max: atomicdir::TARGET_NAME_BYTES_MAX,
            },
        ),
        (".live.atomicdir-0123456789abcdef", NameError::Staging),
    ] {
        match refused(&scratch, name, &pair("new")) {
            Reason::Name(error) => assert_eq!(error, expected),
            other => panic!("{name:?}: {other}"),
        }
    }
}

#[test]
fn a_wrong_entry_is_refused() {
    let scratch = Scratch::with(&pair("old"));
    for name in ["", ".", "..", "/etc", "a/b"] {
        let mut tree = Tree::new(0o755);
        tree.file("fine", 0o644, "").file(name, 0o644, "");
        assert!(
            matches!(refused(&scratch, TARGET, &tree), Reason::Tree(_)),
            "{name:?}"
        );
    }
}

#[test]
fn a_symlinked_target_is_refused() {
    let scratch = Scratch::new();
    std::fs::create_dir(scratch.path("real")).unwrap();
    symlink("real", scratch.path(TARGET)).unwrap();
    let reason = refused(&scratch, TARGET, &pair("new"));
    assert!(
        matches!(reason, Reason::Target(TargetError::Symlink)),
        "{reason}"
    );
    symlink("nowhere", scratch.path("dangling")).unwrap();
    let reason = refused(&scratch, "dangling", &pair("new"));
    assert!(
        matches!(reason, Reason::Target(TargetError::Symlink)),
        "{reason}"
    );
}

#[test]
fn a_file_as_target_is_refused() {
    let scratch = Scratch::new();
    std::fs::write(scratch.path("file"), "").unwrap();
    let reason = refused(&scratch, "file", &pair("new"));
    let expected = TargetError::NotADirectory(FileKind::Regular);
    assert!(matches!(reason, Reason::Target(error) if error == expected));
}

#[test]
fn a_mount_point_as_target_is_refused() {
    let root = OsFs.open_dir(Path::new("/")).unwrap();
    let result = publish(
        &OsFs,
        &root,
        OsStr::new("proc"),
        &pair("new"),
        &Options::default(),
    );
    assert!(
        matches!(
            &result,
            Err(PublishError::NotPublished {
                reason: Reason::Target(TargetError::MountPoint),
                ..
            })
        ),
        "{result:?}"
    );
}

#[test]
fn a_taken_staging_name_is_left_alone() {
    let scratch = Scratch::with(&pair("old"));
    let stranger = scratch.leave_behind(5);
    let options = Options {
        sweep: false,
        token: Some(5),
        ..Options::default()
    };
    let published = scratch.publish_with(&pair("new"), &options).unwrap();
    assert!(published.replaced && published.cleanup_errors.is_empty());
    assert_eq!(scratch.live(), Some(pair("new")));
    assert_eq!(scratch.beside(), [stranger]);
}

#[test]
fn writers_do_not_disturb_each_other() {
    const WRITERS: usize = 4;
    const ROUNDS: usize = 40;
    let scratch = Scratch::with(&pair("first"));
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let scratch = &scratch;
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let tree = pair(&format!("{writer}.{round}"));
                    let published = scratch.publish(&tree).unwrap();
                    assert!(published.replaced && published.cleanup_errors.is_empty());
                }
            });
        }
    });
    let last: Vec<_> = (0..WRITERS)
        .map(|writer| pair(&format!("{writer}.{}", ROUNDS - 1)))
        .collect();
    assert!(last.contains(&scratch.live().unwrap()));
    assert_eq!(scratch.beside(), Vec::<String>::new());
}

#[test]
fn writers_that_create_do_not_disturb_each_other() {
    for _ in 0..20 {
        let scratch = Scratch::new();
        std::thread::scope(|scope| {
            for writer in ["a", "b", "c"] {
                let scratch = &scratch;
                scope.spawn(move || scratch.publish(&pair(writer)).unwrap());
            }
        });
        assert!(["a", "b", "c"].map(pair).contains(&scratch.live().unwrap()));
        assert_eq!(scratch.beside(), Vec::<String>::new());
    }
}

#[test]
fn what_was_published_reads_back_the_same() {
    let scratch = Scratch::with(&varied());
    let dir = OsFs
        .open_dir(&scratch.path(target().to_str().unwrap()))
        .unwrap();
    assert_eq!(Tree::load(&OsFs, &dir).unwrap(), varied());
}
