//! Built-in writers as held subjects: this test program itself, started again, is the child.
#![allow(
    clippy::unwrap_used,
    reason = "the lint knows tests, and not what they are made of"
)]

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::ExitCode;

use atomicdir::Tree;
use untorn::writers::{BuiltinWriter, tree_from};
use untorn_fs::OsFs;
use untorn_process::{CONTROL_FD_VARIABLE, HeldSubject, Interrupt, Limits, SubjectCommand};
use untorn_spec::{FileSpec, FromSubject, Syscall, TreeSpec, WriterOrder};

#[test]
#[ignore = "the child of the other tests"]
fn child() -> ExitCode {
    match std::env::var_os(CONTROL_FD_VARIABLE) {
        Some(_) => untorn::subject::main(),
        None => ExitCode::SUCCESS,
    }
}

fn spec() -> TreeSpec {
    let file = |path: &str| FileSpec {
        path: path.to_owned(),
        bytes: [5000, 6000],
        modes: ["0644".to_owned(), "0600".to_owned()],
    };
    TreeSpec {
        target: "live".to_owned(),
        count: 0,
        file: vec![file("tls.crt"), file("tls.key")],
        absent_at_first: false,
    }
}

fn start(writer: &str, parent: &Path) -> HeldSubject {
    let args = ["--exact", "child", "--ignored", "--nocapture"];
    let subject = SubjectCommand {
        program: "/proc/self/exe".into(),
        args: args.into_iter().map(OsString::from).collect(),
        order: WriterOrder {
            writer: writer.to_owned(),
            parent: parent.display().to_string(),
            target: "live".to_owned(),
            tree: spec(),
            seed: 7,
        },
        mount_namespace: None,
        limits: Limits::default(),
    };
    HeldSubject::spawn(&subject, &Interrupt::detached().unwrap()).unwrap()
}

/// Runs to the end, or kills the subject at a boundary: before the call of that index.
fn run(writer: &str, parent: &Path, kill_at: Option<u32>) -> Vec<FromSubject> {
    let mut held = start(writer, parent);
    let mut messages = Vec::new();
    let mut boundary = 0;
    loop {
        let message = held.next().unwrap();
        messages.push(message.clone());
        match message {
            FromSubject::Finished { .. } => {
                let exit = held.wait().unwrap();
                assert!(exit.status.success(), "{messages:?}: {}", exit.stderr);
                return messages;
            }
            FromSubject::Returned(call) => boundary = call.index + 1,
            FromSubject::Started | FromSubject::Acknowledged => {}
        }
        if kill_at == Some(boundary) {
            held.kill().unwrap();
            return messages;
        }
        held.go().unwrap();
    }
}

/// A parent directory with generation 0 in it.
fn parent_with_old_tree() -> tempfile::TempDir {
    let parent = tempfile::tempdir().unwrap();
    let live = parent.path().join("live");
    fs::create_dir(&live).unwrap();
    for file in spec().generation(0).unwrap().files {
        let path = live.join(&file.path);
        fs::write(&path, &file.bytes).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(file.mode)).unwrap();
    }
    parent
}

fn assert_new_tree(parent: &Path, context: &str) {
    let names = fs::read_dir(parent).unwrap();
    let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["live"], "{context}");
    let opened = OsFs.open_dir(&parent.join("live")).unwrap();
    let found = Tree::load(&OsFs, &opened).unwrap();
    let new = tree_from(&spec().generation(1).unwrap());
    assert!(found == new, "{context}: {found:?}");
}

#[test]
fn a_subject_reports_every_call_and_then_success() {
    let parent = parent_with_old_tree();
    let messages = run("exchange-without-fsync", parent.path(), None);
    assert_new_tree(parent.path(), "undisturbed");

    let (first, rest) = messages.split_first().unwrap();
    assert_eq!(*first, FromSubject::Started);
    let (calls, end) = rest.split_at(rest.len() - 2);
    let finished = FromSubject::Finished { error: None };
    assert_eq!(end, [FromSubject::Acknowledged, finished]);
    for (index, call) in calls.iter().enumerate() {
        let FromSubject::Returned(call) = call else {
            panic!("{call:?}");
        };
        assert_eq!(call.index as usize, index);
    }
    let exchange = Syscall {
        index: 8,
        name: "renameat2#1".to_owned(),
        text: "renameat2#1 EXCHANGE .live.staging live".to_owned(),
        errno: None,
    };
    assert!(
        calls.contains(&FromSubject::Returned(exchange)),
        "{calls:?}"
    );
}

#[test]
fn what_cannot_be_done_is_reported() {
    let parent = tempfile::tempdir().unwrap();
    for (writer, directory, wanted) in [
        ("none", "", "there is no writer named `none`"),
        ("atomicdir", "missing", "No such file or directory"),
    ] {
        let mut held = start(writer, &parent.path().join(directory));
        let message = held.next().unwrap();
        let FromSubject::Finished { error: Some(error) } = message else {
            panic!("{message:?}");
        };
        assert!(error.contains(wanted), "{error}");
        assert!(!held.wait().unwrap().status.success());
    }
}

#[test]
fn killed_anywhere_and_run_again_every_writer_ends_in_the_new_tree() {
    for writer in BuiltinWriter::ALL {
        let calls = run(writer.name(), parent_with_old_tree().path(), None).len() - 3;
        for boundary in 0..=u32::try_from(calls).unwrap() {
            let parent = parent_with_old_tree();
            run(writer.name(), parent.path(), Some(boundary));
            run(writer.name(), parent.path(), None);
            let context = format!("{}, killed at boundary {boundary}", writer.name());
            assert_new_tree(parent.path(), &context);
        }
    }
}
