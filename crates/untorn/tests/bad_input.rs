//! Bad input and poor machines: a clear error each, the documented exit code, nothing left behind.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use common::{Place, Ran, cannot_run, ran};

/// The exit codes of `untorn --help`.
const VIOLATION_NONE: i32 = 0;
const USAGE: i32 = 2;
const UNSUPPORTED: i32 = 3;

/// A case that takes a fraction of a second and must be caught.
const QUICK: &str = "control-per-file-fsync";

/// The code, every word on the output named, and nothing left behind.
fn expect(place: &Place, ran: &Ran, code: i32, words: &[&str]) {
    assert_eq!(ran.code, Some(code), "{ran:#?}");
    for word in words {
        let said = ran.stderr.contains(word) || ran.stdout.contains(word);
        assert!(said, "`{word}` is not said: {ran:#?}");
    }
    // A person gets one message, not a chain that says everything twice.
    for line in ran.stderr.lines() {
        let twice = line.matches("(os error").count();
        assert!(twice <= 1, "{ran:#?}");
    }
    assert!(!ran.stderr.contains("panicked"), "{ran:#?}");
    place.assert_nothing_left();
}

/// Refused before anything begins: not even a run folder is made.
fn refused(place: &Place, arguments: &[&str], words: &[&str]) {
    let ran = place.run(arguments);
    expect(place, &ran, USAGE, words);
    assert_eq!(ran.stdout, "", "{ran:#?}");
    assert!(!place.path("runs").exists(), "{ran:#?}");
}

#[test]
fn the_help_documents_the_exit_codes() {
    let help = Place::new().run(&["--help"]);
    assert_eq!(help.code, Some(0));
    for word in ["2 usage", "3 unsupported", "70 internal", "130", "143"] {
        assert!(help.stdout.contains(word), "{word}: {}", help.stdout);
    }
}

#[test]
fn names_that_are_unknown() {
    let place = Place::new();
    let near = ["--fs", "`ext5`", "did you mean `ext4`?", "btrfs"];
    refused(&place, &["run", "two-files", "--fs", "ext5"], &near);
    refused(
        &place,
        &["certify", "--fs", "ext4,,xfs"],
        &["--fs", "empty name"],
    );
    let near = ["`two-fiels`", "did you mean `two-files`?", "untorn list"];
    refused(&place, &["run", "two-fiels"], &near);
    refused(
        &place,
        &["certify", "--suite", "quikc"],
        &["`quikc`", "quick"],
    );
    refused(
        &place,
        &["run", "two-files", "--workers", "0"],
        &["--workers", "1..=64"],
    );
    refused(&place, &["run", "two-files", "--seed", "x"], &["--seed"]);
    let fs = ["run", "sixty-files-syncfs", "--fs", "xfs-512"];
    refused(&place, &fs, &["none of these scenarios is for xfs-512"]);
    refused(
        &place,
        &["report", "--runs", "nowhere"],
        &["nowhere", "run something first"],
    );
}

#[test]
fn scenarios_that_are_wrong() {
    let place = Place::new();
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../scenarios/two-files.toml"
    );
    let right = fs::read_to_string(path).expect("a scenario");
    let line =
        |text: &str, of: &str| 1 + text.lines().take_while(|line| !line.contains(of)).count();

    let wrong = right.replace("writer =", "wrriter =");
    place.file("field.toml", &wrong);
    let at = format!("field.toml:{}:1", line(&wrong, "wrriter"));
    let words = [&*at, "unknown field `wrriter`", "did you mean `writer`?"];
    refused(&place, &["run", "field.toml"], &words);

    let wrong = right.replace("path = \"tls.key\"", "path = \"../tls.key\"");
    place.file("value.toml", &wrong);
    let at = format!("value.toml:{}", line(&wrong, "../tls.key"));
    refused(&place, &["run", "value.toml"], &[&at, "`../tls.key`"]);

    place.file("broken.toml", "name = [\n");
    refused(&place, &["run", "broken.toml"], &["broken.toml:"]);
    refused(
        &place,
        &["run", "nowhere.toml"],
        &["nowhere.toml", "No such file"],
    );
    place.tree("folder", &[]);
    refused(&place, &["run", "folder"], &["folder", "Is a directory"]);
}

#[test]
fn directories_that_are_none() {
    let place = Place::new();
    place.file("file", "");
    let check = |old: &str, words: &[&str]| {
        let arguments = ["check", "--fs", "ext4", "--old", old, "--", "true", "{dir}"];
        refused(&place, &arguments, words);
    };
    check("nowhere", &["--old nowhere", "No such file"]);
    check("file", &["--old file", "not a directory"]);

    place.tree("old", &[("file", "")]);
    let without = ["check", "--fs", "ext4", "--old", "old", "--", "true"];
    refused(&place, &without, &["`true`", "{dir}"]);
    let nothing = ["check", "--fs", "ext4", "--old", "old"];
    refused(&place, &nothing, &["<CMD>"]);
}

#[test]
fn commands_that_do_not_work() {
    if cannot_run("commands_that_do_not_work") {
        return;
    }
    let check = |more: &[&str], words: &[&str]| {
        let place = Place::new();
        place.tree("old", &[("file", "old\n")]);
        place.file("plain", "#!/bin/sh\nexit 0\n");
        let fixed = ["check", "--fs", "ext4", "--workers", "1", "--old", "old"];
        let ran = place.run(&[&fixed, more].concat());
        expect(&place, &ran, USAGE, words);
        assert_eq!(ran.stdout, "", "no verdict: {ran:#?}");
        assert_eq!(fs::read(place.path("old/file")).expect("a file"), b"old\n");
    };
    let not_found = ["`no-such-program`", "not found in PATH"];
    check(&["--", "no-such-program", "{dir}"], &not_found);
    check(
        &["--", "./nowhere", "{dir}"],
        &["`./nowhere`", "not found at that path"],
    );
    let not_executable = ["`./plain`", "cannot be executed", "Permission denied"];
    check(&["--", "./plain", "{dir}"], &not_executable);
    let failed = [
        "exit status: 3",
        "although nothing disturbed it",
        "it said: oh no",
    ];
    check(
        &["--", "sh", "-c", "echo oh no >&2; exit 3", "{dir}"],
        &failed,
    );
    check(&["--", "sh", "-c", "kill -9 $$", "{dir}"], &["SIGKILL"]);
    let too_long = ["--timeout 1", "killed after 1s"];
    let endless = "sleep 1000 & sleep 1000 # {dir}";
    check(&["--timeout", "1", "--", "sh", "-c", endless], &too_long);
}

#[test]
fn the_old_tree_holds_what_no_tree_can() {
    let place = Place::new();
    let old = place.tree("old", &[]);
    let made = ran(place.command("mkfifo").arg(old.join("pipe")));
    assert_eq!(made.code, Some(0));
    let arguments = [
        "check", "--fs", "ext4", "--old", "old", "--", "true", "{dir}",
    ];
    refused(
        &place,
        &arguments,
        &["old/pipe", "neither a file", "remove it"],
    );
}

#[test]
fn without_root() {
    if cannot_run("without_root") {
        return;
    }
    let place = Place::new();
    // Everybody may read the program and write here.
    let open = |path: &std::path::Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("permissions");
    };
    let program = place.path("untorn");
    fs::copy(env!("CARGO_BIN_EXE_untorn"), &program).expect("a copy");
    open(&program, 0o755);
    open(place.path("").as_path(), 0o777);
    open(place.temporary(), 0o777);
    place.tree("old", &[("file", "")]);
    let as_nobody = |arguments: &[&str]| {
        let mut command = place.command("setpriv");
        command
            .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
            .arg(&program)
            .args(arguments);
        ran(&mut command)
    };
    let words = ["unsupported", "65534", "run as root"];
    let run = as_nobody(&["run", QUICK, "--fs", "ext4"]);
    expect(&place, &run, UNSUPPORTED, &words);
    let check = as_nobody(&[
        "check", "--fs", "ext4", "--old", "old", "--", "true", "{dir}",
    ]);
    expect(&place, &check, UNSUPPORTED, &words);
    let doctor = as_nobody(&["doctor"]);
    expect(
        &place,
        &doctor,
        UNSUPPORTED,
        &["MISSING  privilege", "run as root"],
    );

    // What may not be read or written is named.
    let secret = place.tree("secret", &[]);
    open(&secret, 0o700);
    let check = as_nobody(&["check", "--old", "secret", "--", "true", "{dir}"]);
    expect(
        &place,
        &check,
        USAGE,
        &["--old secret", "Permission denied"],
    );
    let run = as_nobody(&["run", QUICK, "--out", "secret/runs"]);
    expect(
        &place,
        &run,
        USAGE,
        &["--out", "secret/runs", "Permission denied"],
    );
}

/// Runs the quick case in a mount namespace that a script has changed first. The script gets the
/// place's directory `there` as its working directory's entry of that name.
fn changed(place: &Place, script: &str, environment: &[(&str, &str)], more: &[&str]) -> Ran {
    place.tree("there", &[]);
    let mut command = place.command("unshare");
    command
        .args(["--mount", "sh", "-c"])
        .arg(format!("set -e\n{script}\nexec \"$0\" \"$@\""))
        .arg(env!("CARGO_BIN_EXE_untorn"))
        .args(["run", QUICK, "--fs", "ext4", "--workers", "1"])
        .args(more)
        .envs(environment.iter().copied());
    ran(&mut command)
}

#[test]
fn a_machine_that_lacks_something() {
    if cannot_run("a_machine_that_lacks_something") {
        return;
    }
    let lacks = |script: &str, words: &[&str]| {
        let place = Place::new();
        let ran = changed(&place, script, &[], &[]);
        expect(&place, &ran, UNSUPPORTED, words);
    };
    let loops = ["no loop device", "untorn doctor --clean"];
    lacks("mount --bind /dev/null /dev/loop-control", &loops);
    lacks("mount --bind /dev/null /dev/fuse", &["FUSE"]);
    let without_mkfs = "PATH=/nowhere";
    lacks(without_mkfs, &["mkfs.ext4", "e2fsprogs"]);
}

#[test]
fn full_disks() {
    if cannot_run("full_disks") {
        return;
    }
    // Under the images and everything else that is temporary.
    for size in ["8k", "256k"] {
        let place = Place::new();
        let temporary = place.path("there").display().to_string();
        let cache = place.path("cache").display().to_string();
        let script = format!("mount -t tmpfs -o size={size} full there");
        let environment = [("TMPDIR", &*temporary), ("UNTORN_CACHE", &cache)];
        let ran = changed(&place, &script, &environment, &[]);
        expect(
            &place,
            &ran,
            UNSUPPORTED,
            &[&temporary, "free some space", "TMPDIR"],
        );
    }
    // Under the run folder.
    for size in ["8k", "64k"] {
        let place = Place::new();
        let script = format!("mount -t tmpfs -o size={size} full there");
        let ran = changed(&place, &script, &[], &["--out", "there/runs"]);
        expect(
            &place,
            &ran,
            UNSUPPORTED,
            &["--out must have more space", "there/runs", "No space left"],
        );
    }
}

/// The last line that a run of the quick case prints, when it works.
fn expect_it_works(place: &Place, ran: &Ran) {
    expect(place, ran, VIOLATION_NONE, &["violation: mixed on ext4"]);
}

#[test]
fn a_cache_that_cannot_be_written_does_not_matter() {
    if cannot_run("a_cache_that_cannot_be_written_does_not_matter") {
        return;
    }
    for script in [
        "mount -t tmpfs -o size=16k full there",
        "mount -t tmpfs -o ro readonly there",
    ] {
        let place = Place::new();
        let cache = place.path("there").display().to_string();
        let ran = changed(&place, script, &[("UNTORN_CACHE", &cache)], &[]);
        expect_it_works(&place, &ran);
    }
    let place = Place::new();
    let nowhere = [("UNTORN_CACHE", "/dev/null/nowhere")];
    expect_it_works(&place, &changed(&place, "", &nowhere, &[]));
}

#[test]
fn a_broken_cached_image_is_made_again() {
    if cannot_run("a_broken_cached_image_is_made_again") {
        return;
    }
    let place = Place::new();
    let run = || {
        let mut command = place.untorn();
        command
            .args(["run", QUICK, "--fs", "ext4", "--workers", "1"])
            .env("UNTORN_CACHE", place.path("cache"));
        expect_it_works(&place, &ran(&mut command));
    };
    run();
    let entries = fs::read_dir(place.path("cache")).expect("a cache");
    let images: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    assert_eq!(images.len(), 1, "{images:?}");
    let whole = fs::read(&images[0]).expect("an image");
    let mut changed = whole.clone();
    changed[whole.len() / 2] ^= 0xff;
    // Also cut where a page ends.
    for broken in [
        &b""[..],
        b"garbage",
        &whole[..whole.len() / 2],
        &whole[..24 + 4104],
        &changed,
    ] {
        fs::write(&images[0], broken).expect("it is written");
        run();
        assert!(
            fs::read(&images[0]).expect("an image") == whole,
            "made again"
        );
    }
}
