//! Capturing real trees.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use untorn_oracle::{CaptureOptions, Content, Name, Node, TreeSnapshot, names_in};

fn capture(path: &Path) -> TreeSnapshot {
    TreeSnapshot::capture(path, &CaptureOptions::default()).expect("a capture")
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
}

fn write(path: &Path, mode: u32, content: &[u8]) {
    fs::write(path, content).expect("a written file");
    set_mode(path, mode);
}

#[test]
fn a_tree_is_captured_as_it_is() {
    let top = tempfile::tempdir().unwrap();
    let live = top.path().join("live");
    let odd = std::ffi::OsStr::from_bytes(b"odd\xff");
    fs::create_dir_all(live.join("sub")).unwrap();
    set_mode(&live, 0o2755);
    set_mode(&live.join("sub"), 0o700);
    write(&live.join("key"), 0o600, b"secret\n");
    write(&live.join("sub").join(odd), 0o4755, b"\0\xfe");
    symlink("nowhere/at all", live.join("link")).unwrap();
    let expected = TreeSnapshot::new(Node::directory(
        0o2755,
        [
            ("key", Node::file(0o600, b"secret\n")),
            ("link", Node::symlink("nowhere/at all")),
            (
                "sub",
                Node::directory(0o700, [(odd, Node::file(0o4755, b"\0\xfe"))]),
            ),
        ],
    ));
    let seen = capture(&live);
    assert_eq!(seen.difference(&expected), []);
    assert_eq!(seen, expected);
    assert_eq!(seen.digest(), expected.digest());
    let json = serde_json::to_string(&seen).unwrap();
    assert!(
        json.contains(
            r#""key":{"file":{"attributes":{"mode":384},"content":{"whole":{"text":"secret\n"}}}}"#
        ),
        "{json}"
    );
    assert!(json.contains(r#""odd\\xff":"#), "{json}");
    assert_eq!(
        serde_json::from_str::<TreeSnapshot>(&json).unwrap(),
        expected
    );
}

#[test]
fn nothing_is_missing_and_a_link_is_a_link() {
    let top = tempfile::tempdir().unwrap();
    let link = top.path().join("live");
    assert!(capture(&link).is_missing());
    symlink(".", &link).unwrap();
    assert_eq!(capture(&link), TreeSnapshot::new(Node::symlink(".")));
    let options = CaptureOptions::default();
    let directory = fs::File::open(top.path()).unwrap();
    assert_eq!(
        TreeSnapshot::capture_at(&directory, "live", &options).unwrap(),
        capture(&link)
    );
}

#[test]
fn a_pipe_does_not_block() {
    let top = tempfile::tempdir().unwrap();
    let (mode, kind) = (rustix::fs::Mode::from(0o600), rustix::fs::FileType::Fifo);
    rustix::fs::mknodat(rustix::fs::CWD, top.path().join("pipe"), kind, mode, 0).unwrap();
    let seen = capture(top.path());
    assert!(matches!(
        seen.nodes().into_values().last(),
        Some(Node::Other { .. })
    ));
}

#[test]
fn a_large_file_is_kept_as_a_summary_and_compared_by_every_byte() {
    let top = tempfile::tempdir().unwrap();
    let path = top.path().join("large");
    let mut bytes = vec![7; 300_000];
    bytes[200_000..].fill(0);
    let options = CaptureOptions {
        content_bytes_max: 100_000,
        summary_prefix_bytes: 10,
        ..CaptureOptions::default()
    };
    let capture = |bytes: &[u8]| {
        write(&path, 0o644, bytes);
        TreeSnapshot::capture(&path, &options).unwrap()
    };
    let seen = capture(&bytes);
    let Node::File {
        content: Content::Summary(summary),
        ..
    } = seen.root()
    else {
        panic!("kept whole");
    };
    assert_eq!(
        (summary.length, summary.zero_tail, summary.prefix.len()),
        (300_000, 100_000, 10)
    );
    // Equality does not depend on how a content is kept.
    let whole = TreeSnapshot::new(Node::file(0o644, bytes.clone()));
    assert_eq!((&seen, seen.digest()), (&whole, whole.digest()));
    assert_eq!(
        serde_json::from_str::<TreeSnapshot>(&serde_json::to_string(&seen).unwrap()).unwrap(),
        whole
    );
    bytes[299_999] = 1;
    assert_ne!(capture(&bytes), seen);
    assert_ne!(capture(&bytes).digest(), seen.digest());
}

#[test]
fn owners_and_attributes_are_captured_when_asked_for() {
    let top = tempfile::tempdir().unwrap();
    let path = top.path().join("file");
    write(&path, 0o644, b"");
    let flags = rustix::fs::XattrFlags::empty();
    let stored = rustix::fs::setxattr(&path, "user.untorn", b"\x01", flags).is_ok();
    let options = CaptureOptions {
        owner: true,
        xattrs: true,
        ..CaptureOptions::default()
    };
    let seen = TreeSnapshot::capture(&path, &options).unwrap();
    let attributes = seen.root().attributes().unwrap();
    assert_eq!(
        attributes.owner.unwrap().uid,
        rustix::process::getuid().as_raw()
    );
    let value = attributes
        .xattrs
        .as_ref()
        .unwrap()
        .get(&Name::from("user.untorn"));
    // Not every file system of a temporary directory stores extended attributes.
    assert_eq!(value.map(Name::as_bytes), stored.then_some(&b"\x01"[..]));
    assert_eq!(
        serde_json::from_str::<TreeSnapshot>(&serde_json::to_string(&seen).unwrap()).unwrap(),
        seen
    );
}

#[test]
fn differences_are_told_path_by_path() {
    let before = TreeSnapshot::new(Node::directory(
        0o755,
        [
            ("gone", Node::file(0o644, "12")),
            ("key", Node::file(0o644, "abc")),
            ("kind", Node::symlink("a")),
            ("link", Node::symlink("a")),
        ],
    ));
    let after = TreeSnapshot::new(Node::directory(
        0o700,
        [
            ("key", Node::file(0o600, "abXd")),
            ("kind", Node::file(0o777, "")),
            ("link", Node::symlink("b")),
            ("more", Node::directory::<&str>(0o755, [])),
        ],
    ));
    let lines: Vec<_> = before
        .difference(&after)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        lines,
        [
            ".: mode 0755 became 0700",
            "gone: gone: file of 2 bytes, mode 0644",
            "key: 3 bytes became 4, first difference at byte 2, mode 0644 became 0600",
            "kind: symbolic link became file",
            "link: target a became b",
            "more: added: directory, mode 0755",
        ]
    );
}

#[test]
fn names_beside_a_target() {
    let top = tempfile::tempdir().unwrap();
    write(&top.path().join("b"), 0o644, b"");
    write(&top.path().join("a"), 0o644, b"");
    let names: Vec<_> = names_in(top.path())
        .unwrap()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(names, ["a", "b"]);
}
