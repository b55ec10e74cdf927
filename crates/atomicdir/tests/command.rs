//! The command's exit codes and words.

mod common;

use std::path::Path;
use std::process::Command;

use common::{Scratch, pair};
use untorn_fs::OsFs;

/// Runs the command; gives its exit code and what it said on stderr.
fn atomicdir(arguments: &[&Path]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_atomicdir"))
        .args(arguments)
        .output()
        .expect("it starts");
    assert_eq!(
        output.stdout, b"",
        "stdout is for what was asked for, and nothing was"
    );
    (
        output.status.code(),
        String::from_utf8(output.stderr).expect("messages are UTF-8"),
    )
}

fn publish(from: &Path, target: &Path, more: &[&Path]) -> (Option<i32>, String) {
    atomicdir(
        &[
            &[Path::new("publish"), Path::new("--from"), from, target],
            more,
        ]
        .concat(),
    )
}

#[test]
fn a_directory_is_published() {
    let (source, scratch) = (
        Scratch::with(&common::varied()),
        Scratch::with(&pair("old")),
    );
    let silence = (Some(0), String::new());
    assert_eq!(
        publish(&source.path("live"), &scratch.path("live"), &[]),
        silence
    );
    assert_eq!(scratch.live(), Some(common::varied()));
    let syncfs = [Path::new("--durability"), Path::new("syncfs")];
    assert_eq!(
        publish(&source.path("live"), &scratch.path("created/"), &syncfs),
        silence
    );
    let created = OsFs.open_dir(&scratch.path("created")).unwrap();
    assert_eq!(
        atomicdir::Tree::load(&OsFs, &created).unwrap(),
        common::varied()
    );
    assert_eq!(scratch.beside(), ["created"]);
}

#[test]
fn refusals_name_the_path_and_what_would_help() {
    let scratch = Scratch::with(&pair("old"));
    let link = scratch.path("link");
    std::os::unix::fs::symlink("live", &link).unwrap();
    let (code, message) = publish(&scratch.path("live"), &link, &[]);
    assert_eq!(code, Some(1));
    assert!(message.contains(link.to_str().unwrap()), "{message}");
    assert!(
        message.contains("not published, the target is untouched"),
        "{message}"
    );
    assert!(
        message.contains("give the directory that it names"),
        "{message}"
    );

    let (code, message) = publish(&scratch.path("absent"), &scratch.path("live"), &[]);
    assert_eq!(code, Some(1));
    assert!(
        message.contains("absent: No such file or directory"),
        "{message}"
    );
    assert_eq!(scratch.live(), Some(pair("old")));
}

#[test]
fn a_special_file_is_refused() {
    let (source, scratch) = (Scratch::with(&pair("new")), Scratch::with(&pair("old")));
    let socket = source.path("live").join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(socket).unwrap();
    let (code, message) = publish(&source.path("live"), &scratch.path("live"), &[]);
    assert_eq!(code, Some(1));
    assert!(
        message.contains("socket is a device, socket or named pipe"),
        "{message}"
    );
    assert_eq!(scratch.live(), Some(pair("old")));
}

#[test]
fn wrong_usage_has_a_code_of_its_own() {
    assert_eq!(atomicdir(&[]).0, Some(2));
    assert_eq!(
        atomicdir(&[Path::new("publish"), Path::new("live")]).0,
        Some(2)
    );
    assert_eq!(publish(Path::new("/"), Path::new("/"), &[]).0, Some(2));
    assert_eq!(publish(Path::new("/"), Path::new(".."), &[]).0, Some(2));
}

#[test]
fn leftovers_are_swept() {
    let scratch = Scratch::with(&pair("old"));
    scratch.leave_behind(1);
    assert_eq!(
        atomicdir(&[Path::new("sweep"), &scratch.path("live")]),
        (Some(0), String::new())
    );
    assert_eq!(scratch.beside(), Vec::<String>::new());
}
