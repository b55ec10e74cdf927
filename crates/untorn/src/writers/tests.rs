//! Each writer on a real directory, call by call.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use atomicdir::Tree;
use untorn_fs::{Completed, OpKind, OsFs, TraceFs};
use untorn_spec::{FileSpec, TreeContent, TreeSpec, WRITERS};

use super::{BuiltinWriter, Job, Published, tree_from};

/// A certificate and its key, the usual subject.
fn pair() -> TreeSpec {
    let file = |path: &str, bytes, mode: &str| FileSpec {
        path: path.to_owned(),
        bytes,
        modes: [mode.to_owned(), mode.to_owned()],
    };
    TreeSpec {
        target: "live".to_owned(),
        count: 0,
        file: vec![
            file("tls.crt", [5000, 6000], "0644"),
            file("tls.key", [1700, 1704], "0600"),
        ],
        absent_at_first: false,
    }
}

/// More files, in directories, with a mode that changes and bits that a umask cuts.
fn nested() -> TreeSpec {
    let mut spec = pair();
    spec.count = 10;
    spec.file.push(FileSpec {
        path: "a/b/deep".to_owned(),
        bytes: [10_000, 3],
        modes: ["0600".to_owned(), "0666".to_owned()],
    });
    spec
}

fn lay_out(content: &TreeContent, root: &Path) {
    let mode = |bits| fs::Permissions::from_mode(bits);
    for directory in &content.directories {
        let path = root.join(&directory.path);
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, mode(directory.mode)).unwrap();
    }
    for file in &content.files {
        let path = root.join(&file.path);
        fs::write(&path, &file.bytes).unwrap();
        fs::set_permissions(&path, mode(file.mode)).unwrap();
    }
}

/// Publishes generation 1 over generation 0 and checks what is there afterwards. Gives the trace.
fn publish(writer: BuiltinWriter, spec: &TreeSpec) -> Vec<Completed> {
    let directory = tempfile::tempdir().unwrap();
    if let Some(old) = spec.generation(0) {
        lay_out(&old, &directory.path().join(&spec.target));
    }
    let tree = tree_from(&spec.generation(1).unwrap());
    let trace = RefCell::new(Vec::new());
    let fs = TraceFs::new(OsFs, |call: &Completed| {
        trace.borrow_mut().push(call.clone());
        Ok(())
    });
    let parent = fs.root(OsFs.open_dir(directory.path()).unwrap());
    let job = Job {
        fs: &fs,
        parent: &parent,
        target: OsStr::new(&spec.target),
        tree: &tree,
        seed: 7,
    };
    assert_eq!(writer.publish(&job).unwrap(), Published::CLEANLY);

    let name = writer.name();
    let names: Vec<_> = fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, [spec.target.as_str()], "{name}: leftovers");
    let opened = OsFs.open_dir(&directory.path().join(&spec.target)).unwrap();
    let found = Tree::load(&OsFs, &opened).unwrap();
    assert!(found == tree, "{name}: not the new tree: {found:?}");
    trace.into_inner()
}

/// Checks the calls of an update of two files, by kind.
fn check_calls(writer: BuiltinWriter, wanted: &str) {
    let trace = publish(writer, &pair());
    assert!(trace.iter().all(|call| call.errno.is_none()));
    let kinds: Vec<&str> = trace.iter().map(|call| call.op.kind.name()).collect();
    let wanted: Vec<&str> = wanted.split_whitespace().collect();
    assert_eq!(kinds, wanted, "{}", writer.name());
}

/// The paths of the syncs and renames of an update of two files.
fn syncs_and_renames(writer: BuiltinWriter) -> Vec<String> {
    let trace = publish(writer, &pair());
    let calls = trace.iter().map(|call| &call.op);
    calls
        .filter(|op| op.kind.is_sync() || op.kind == OpKind::Renameat2)
        .map(ToString::to_string)
        .collect()
}

#[test]
fn the_names_are_those_of_the_list() {
    let here = BuiltinWriter::ALL.map(BuiltinWriter::name);
    let listed: Vec<&str> = WRITERS.iter().map(|writer| writer.name).collect();
    assert_eq!(here.as_slice(), listed);
    for writer in BuiltinWriter::ALL {
        assert_eq!(BuiltinWriter::named(writer.name()), Some(writer));
        assert!(writer.info().is_some());
    }
    assert_eq!(BuiltinWriter::named("none"), None);
}

#[test]
fn undisturbed_every_writer_ends_in_the_new_tree_with_no_leftovers() {
    for writer in BuiltinWriter::ALL {
        for mut spec in [pair(), nested()] {
            publish(writer, &spec);
            spec.absent_at_first = true;
            publish(writer, &spec);
        }
    }
}

#[test]
fn the_same_run_makes_the_same_calls() {
    for writer in BuiltinWriter::ALL {
        assert_eq!(publish(writer, &nested()), publish(writer, &nested()));
    }
}

#[test]
fn the_right_ones_sync_before_and_after_the_exchange() {
    let staging = ".live.atomicdir-0000000000000007";
    assert_eq!(
        syncs_and_renames(BuiltinWriter::Atomicdir),
        [
            format!("fsync#1 {staging}/tls.crt"),
            format!("fsync#2 {staging}/tls.key"),
            format!("fsync#3 {staging}"),
            format!("renameat2#1 EXCHANGE {staging} live"),
            "fsync#4 .".to_owned(),
        ]
    );
    assert_eq!(
        syncs_and_renames(BuiltinWriter::AtomicdirSyncfs),
        [
            format!("syncfs#1 {staging}"),
            format!("renameat2#1 EXCHANGE {staging} live"),
            "fsync#1 .".to_owned(),
        ]
    );
}

#[test]
fn exchange_without_fsync_syncs_nothing() {
    check_calls(
        BuiltinWriter::ExchangeWithoutFsync,
        "mkdirat
         openat write fchmod
         openat write fchmod
         fchmod
         renameat2
         unlinkat unlinkat unlinkat",
    );
}

#[test]
fn exchange_without_parent_fsync_syncs_all_but_the_exchange() {
    check_calls(
        BuiltinWriter::ExchangeWithoutParentFsync,
        "mkdirat
         openat write fchmod fsync
         openat write fchmod fsync
         fchmod fsync
         renameat2
         unlinkat unlinkat unlinkat",
    );
}

#[test]
fn per_file_fsync_syncs_each_file_and_each_rename() {
    check_calls(
        BuiltinWriter::PerFileFsync,
        "openat write fchmod fsync renameat2 fsync
         openat write fchmod fsync renameat2 fsync",
    );
    assert_eq!(
        syncs_and_renames(BuiltinWriter::PerFileFsync)[..3],
        [
            "fsync#1 live/tls.crt.tmp0000000007",
            "renameat2#1 REPLACE live/tls.crt.tmp0000000007 live/tls.crt",
            "fsync#2 live",
        ]
    );
}

#[test]
fn per_file_without_fsync_syncs_nothing() {
    check_calls(
        BuiltinWriter::PerFileWithoutFsync,
        "openat write fchmod renameat2
         openat write fchmod renameat2",
    );
}

#[test]
fn two_renames_syncs_everything_and_exchanges_nothing() {
    check_calls(
        BuiltinWriter::TwoRenames,
        "mkdirat
         openat write fchmod fsync
         openat write fchmod fsync
         fchmod fsync
         renameat2 renameat2 fsync
         unlinkat unlinkat unlinkat",
    );
    assert_eq!(
        syncs_and_renames(BuiltinWriter::TwoRenames)[3..],
        [
            "renameat2#1 REPLACE live .live.aside",
            "renameat2#2 REPLACE .live.staging live",
            "fsync#4 .",
        ]
    );
}

#[test]
fn remove_then_write_removes_before_it_writes() {
    check_calls(
        BuiltinWriter::RemoveThenWrite,
        "unlinkat openat write fchmod fsync fsync
         unlinkat openat write fchmod fsync fsync",
    );
}
