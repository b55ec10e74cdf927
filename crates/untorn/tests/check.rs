//! `untorn check` takes any program: it finds the fault in a script, and passes a correct one.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Place, cannot_run, json, only_run, ran};

const OLD: [(&str, &str); 2] = [("app.conf", "old settings\n"), ("app.key", "old key\n")];
const NEW: [(&str, &str); 2] = [
    ("app.conf", "new settings, longer\n"),
    ("app.key", "new key\n"),
];

/// The built command `atomicdir`. Cargo tells a test only the path of its own package's programs,
/// so this one is built here, beside them; that is quick when it has been built before.
fn atomicdir() -> PathBuf {
    let beside = Path::new(env!("CARGO_BIN_EXE_untorn")).with_file_name("atomicdir");
    let profile = beside.parent().expect("a folder");
    let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    build
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args([
            "build",
            "--quiet",
            "--locked",
            "--package",
            "atomicdir",
            "--bin",
            "atomicdir",
        ])
        .arg("--target-dir")
        .arg(profile.parent().expect("a target folder"));
    if profile.ends_with("release") {
        build.arg("--release");
    }
    let built = build.status().expect("cargo starts");
    assert!(built.success(), "atomicdir is built");
    assert!(beside.exists(), "{} is built", beside.display());
    beside
}

fn trees(place: &Place) {
    place.tree("old", &OLD);
    place.tree("new", &NEW);
}

/// Modification times and contents: nothing may touch the directory that was given.
fn state(directory: &Path) -> Vec<(PathBuf, std::time::SystemTime, Vec<u8>)> {
    let mut paths = vec![directory.to_owned()];
    paths.extend(OLD.map(|(name, _)| directory.join(name)));
    let states = paths.into_iter().map(|path| {
        let modified = std::fs::metadata(&path).and_then(|metadata| metadata.modified());
        let content = std::fs::read(&path).unwrap_or_default();
        (path, modified.expect("a time"), content)
    });
    states.collect()
}

#[test]
fn a_script_that_copies_into_a_live_directory_is_found_out() {
    if cannot_run("a_script_that_copies_into_a_live_directory_is_found_out") {
        return;
    }
    let place = Place::new();
    trees(&place);
    place.file(
        "update.sh",
        "set -e\ncp new/app.conf \"$1/\"\ncp new/app.key \"$1/\"\n",
    );
    let before = state(&place.path("old"));
    let arguments = [
        "check",
        "--fs",
        "ext4,xfs,btrfs",
        "--old",
        "old",
        "--workers",
        "2",
    ];
    let checked = ran(place
        .untorn()
        .args(arguments)
        .args(["--", "sh", "update.sh", "{dir}"]));
    assert_eq!(checked.code, Some(1), "{checked:#?}");
    for profile in ["ext4", "xfs", "btrfs"] {
        assert!(
            checked.stdout.contains(&format!("{profile}: violated")),
            "{checked:#?}"
        );
        let told = checked.stdout.lines().any(|line| {
            line.starts_with("violation: ") && line.ends_with(&format!(" on {profile}"))
        });
        assert!(told, "a story for {profile}: {checked:#?}");
    }
    assert!(
        checked.stdout.contains("writer         sh update.sh {dir}"),
        "{checked:#?}"
    );
    assert_eq!(state(&place.path("old")), before);

    // The story's last line works for commands, too.
    let line = checked.stdout.trim_end().lines().last().expect("a line");
    let replayed = ran(place.command("sh").args(["-c", line]));
    assert_eq!(replayed.code, Some(1), "{replayed:#?}");
    assert!(
        replayed.stdout.contains("the same tree, byte for byte"),
        "{replayed:#?}"
    );
    place.assert_nothing_left();
}

#[test]
fn a_script_that_calls_atomicdir_passes() {
    if cannot_run("a_script_that_calls_atomicdir_passes") {
        return;
    }
    let place = Place::new();
    trees(&place);
    let program = atomicdir();
    let script = format!(
        "set -e\ntest -d new\n'{}' publish --from new \"$1\"\n",
        program.display()
    );
    place.file("update.sh", &script);
    let before = state(&place.path("old"));
    let arguments = [
        "check",
        "--fs",
        "ext4,xfs,btrfs",
        "--old",
        "old",
        "--workers",
        "2",
    ];
    let checked = ran(place
        .untorn()
        .args(arguments)
        .args(["--", "sh", "update.sh", "{dir}"]));
    assert_eq!(checked.code, Some(0), "{checked:#?}");
    assert!(!checked.stdout.contains("violation: "), "{checked:#?}");
    assert_eq!(state(&place.path("old")), before);

    let certificate = json(&only_run(&place.path("runs")).join("certificate.json"));
    let filesystems = certificate["filesystems"].as_array().expect("a list");
    assert_eq!(filesystems.len(), 3);
    for entry in filesystems {
        let case = &entry["scenarios"][0];
        assert_eq!(case["verdict"], "holds", "{entry:#}");
        assert_eq!(case["exhaustive"], true, "{entry:#}");
        assert_eq!(case["coverage"].as_f64(), Some(1.0), "{entry:#}");
        // Both trees were seen, so there was something to tell apart.
        for outcome in ["old", "new"] {
            assert!(case["outcomes"][outcome].as_u64() >= Some(1), "{entry:#}");
        }
    }
    place.assert_nothing_left();
}

/// sed was written by others, and is held at its calls all the same.
#[test]
fn stories_name_the_calls_of_any_program() {
    if cannot_run("stories_name_the_calls_of_any_program") {
        return;
    }
    let place = Place::new();
    trees(&place);
    let check = |boundaries: &str| {
        let arguments = ["check", "--fs", "xfs", "--old", "old", "--boundaries"];
        let command = ["--", "sed", "-i", "s/old/new/", "{dir}/app.conf"];
        ran(place.untorn().args(arguments).arg(boundaries).args(command))
    };
    // The name is renamed, and the journal knows of it before the data are there.
    let checked = check("each");
    assert_eq!(checked.code, Some(1), "{checked:#?}");
    let empty = checked.stdout.split("violation: ").find(|story| {
        story.starts_with("empty on xfs")
            && story.contains("neighbour commit after renameat2#1")
            && story.contains("after renameat2#1 REPLACE live/sed")
    });
    assert!(empty.is_some(), "{checked:#?}");

    let checked = check("none");
    assert!(!checked.stdout.contains("empty on xfs"), "{checked:#?}");
    assert!(!checked.stdout.contains("neighbour commit"), "{checked:#?}");
    place.assert_nothing_left();
}

/// Modes, symbolic links and empty directories are part of the old tree.
#[test]
fn the_old_tree_is_copied_as_it_is() {
    if cannot_run("the_old_tree_is_copied_as_it_is") {
        return;
    }
    let place = Place::new();
    let old = place.tree("old", &[("file", "content")]);
    std::fs::create_dir_all(old.join("a/b")).expect("directories");
    std::os::unix::fs::symlink("../file", old.join("a/link")).expect("a link");
    let script = "set -e\ncd \"$1\"\ntest \"$(cat a/link)\" = content\n\
                  test \"$(readlink a/link)\" = ../file\ntest -d a/b\nsync\n";
    place.file("look.sh", script);
    let arguments = [
        "check", "--fs", "ext4", "--old", "old", "--", "sh", "look.sh", "{dir}",
    ];
    let checked = place.run(&arguments);
    // The script, which only looks, came to its end: what it wants to see was there. To have
    // changed nothing is no pass, though.
    assert_eq!(checked.code, Some(5), "{checked:#?}");
    assert!(
        checked.stdout.contains("no update to check"),
        "{checked:#?}"
    );
    place.assert_nothing_left();
}
