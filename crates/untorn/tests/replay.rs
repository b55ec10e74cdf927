//! A violation's last printed line shows it again, exactly, as often as it is run.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use common::{Place, Ran, cannot_run, json, only_run, ran};
use serde_json::{Value, json};

/// How often each printed line is run.
const TIMES: u32 = 10;

/// The last lines of the stories on stdout: the replay commands.
fn printed_commands(stdout: &str) -> Vec<&str> {
    let stories = stdout.split("violation: ").skip(1);
    stories
        .map(|story| story.trim_end().lines().last().expect("a last line"))
        .collect()
}

fn kinds(stdout: &str) -> Vec<&str> {
    stdout
        .lines()
        .filter_map(|line| line.strip_prefix("violation: "))
        .filter_map(|line| line.split(" on ").next())
        .collect()
}

fn shell(place: &Place, line: &str) -> Ran {
    ran(place.command("sh").args(["-c", line]))
}

/// The value of a line such as `tree         1234`.
fn value<'a>(stdout: &'a str, name: &str) -> &'a str {
    let mut lines = stdout.lines();
    let found = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    found
        .unwrap_or_else(|| panic!("no {name}: {stdout}"))
        .trim()
}

/// The damage that each kind promises, in a tree that was copied out.
fn shows_the_damage(kind: &str, tree: &Path) {
    let length = |name: &str| fs::metadata(tree.join(name)).map(|metadata| metadata.len());
    let lengths = (length("tls.crt").ok(), length("tls.key").ok());
    match kind {
        "empty" => assert!(lengths.0 == Some(0) || lengths.1 == Some(0), "{lengths:?}"),
        "mixed" => assert_eq!(lengths, (Some(6000), Some(1700))),
        "leftover" => assert!(fs::read_dir(tree).expect("a tree").count() > 2),
        "lost-acknowledged" => assert_eq!(lengths, (Some(5000), Some(1700))),
        other => panic!("unexpected kind {other}"),
    }
}

fn printed_lines_reproduce_on(profile: &str) {
    if cannot_run("a printed line reproduces its violation") {
        return;
    }
    let place = Place::new();
    // A blank and a quote in the path must survive being pasted.
    let scenarios = ["control-exchange-without-fsync", "control-per-file-fsync"];
    let recorded = ran(place
        .untorn()
        .arg("run")
        .args(scenarios)
        .args(["--fs", profile, "--out", "my run's"]));
    assert_eq!(recorded.code, Some(0), "{recorded:#?}");
    let (kinds, lines) = (kinds(&recorded.stdout), printed_commands(&recorded.stdout));
    assert_eq!(kinds.len(), lines.len());
    for kind in ["empty", "mixed"] {
        assert!(kinds.contains(&kind), "{kinds:?}");
    }
    for (kind, line) in kinds.iter().zip(&lines) {
        let mut trees = BTreeMap::new();
        for _ in 0..TIMES {
            let replayed = shell(&place, line);
            assert_eq!(replayed.code, Some(1), "{line}: {replayed:#?}");
            let same = "reproduced   the same tree, byte for byte";
            assert!(replayed.stdout.contains(same), "{line}: {replayed:#?}");
            assert_eq!(value(&replayed.stdout, "outcome"), *kind);
            let tree = value(&replayed.stdout, "tree").to_owned();
            *trees.entry(tree).or_insert(0u32) += 1;
        }
        assert_eq!(trees.values().collect::<Vec<_>>(), [&TIMES], "{trees:?}");
    }

    // The bundles say what was printed, and the recovered tree can be looked at.
    let run = only_run(&place.path("my run's"));
    for (number, kind) in (1..).zip(&kinds) {
        let bundle = run.join(format!("violations/{number}"));
        let facts = json(&bundle.join("bundle.json"));
        assert_eq!(facts["violation"]["kind"], **kind);
        let copy = place.path(&format!("copy-{number}"));
        let (bundle, copy_text) = (bundle.to_string_lossy(), copy.to_string_lossy());
        let extracted = place.run(&["replay", &bundle, "--extract", &copy_text]);
        assert_eq!(extracted.code, Some(1), "{extracted:#?}");
        shows_the_damage(kind, &copy);

        // A token is enough to find the bundle.
        let token = facts["violation"]["token"].as_str().expect("a token");
        let found = place.run(&["replay", token, "--runs", "my run's"]);
        assert_eq!(found.code, Some(1), "{found:#?}");
        assert_eq!(value(&found.stdout, "outcome"), *kind);
    }
    place.assert_nothing_left();
}

#[test]
fn printed_lines_reproduce_on_ext4() {
    printed_lines_reproduce_on("ext4");
}

#[test]
fn printed_lines_reproduce_on_xfs() {
    printed_lines_reproduce_on("xfs");
}

#[test]
fn printed_lines_reproduce_on_btrfs() {
    printed_lines_reproduce_on("btrfs");
}

/// A bundle of a run, to be broken.
fn some_bundle(place: &Place) -> PathBuf {
    let ran = place.run(&["run", "control-per-file-fsync", "--fs", "ext4"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    only_run(&place.path("runs")).join("violations/1")
}

fn copied(place: &Place, bundle: &Path, name: &str) -> PathBuf {
    let copy = place.path(name);
    fs::create_dir(&copy).expect("a new directory");
    for entry in fs::read_dir(bundle).expect("a bundle").flatten() {
        fs::copy(entry.path(), copy.join(entry.file_name())).expect("a copy");
    }
    copy
}

#[test]
fn a_broken_bundle_is_a_clear_error() {
    if cannot_run("a_broken_bundle_is_a_clear_error") {
        return;
    }
    let place = Place::new();
    let bundle = some_bundle(&place);
    let refused = |name: &str, words: &[&str], damage: &dyn Fn(&Path)| {
        let copy = copied(&place, &bundle, name);
        damage(&copy);
        let ran = place.run(&["replay", name]);
        assert_eq!(ran.code, Some(2), "{name}: {ran:#?}");
        assert_eq!(ran.stdout, "", "{name}");
        let lines = ran.stderr.lines().count();
        assert_eq!(lines, 1, "one line says it all: {ran:#?}");
        for word in words {
            assert!(ran.stderr.contains(word), "{name}: {word}: {ran:#?}");
        }
    };
    for file in ["bundle.json", "base.image.zst", "block.log"] {
        let place = format!("without-{file}/{file}");
        let words = [&*place, "is this a bundle?"];
        refused(&format!("without-{file}"), &words, &|copy| {
            fs::remove_file(copy.join(file)).expect("it was there");
        });
        let short = format!("short-{file}/{file}");
        refused(&format!("short-{file}"), &[&short], &|copy| {
            let path = copy.join(file);
            let whole = fs::read(&path).expect("it is there");
            fs::write(&path, &whole[..whole.len() / 2]).expect("it is written");
        });
        let garbage = format!("garbage-{file}/{file}");
        refused(&format!("garbage-{file}"), &[&garbage], &|copy| {
            fs::write(copy.join(file), "{\"x\": }").expect("it is written");
        });
    }
    // Facts that contradict the rest.
    let changes: [(&str, Value, &str); 5] = [
        ("profile", json!("ext9"), "`ext9`"),
        ("epoch", json!(999), "no epoch 999"),
        ("choices", json!("7=55"), "no version 55"),
        ("choices", json!("no choices"), "no choices"),
        ("unit", json!(0), "units of 0 bytes"),
    ];
    for (number, (field, value, words)) in changes.into_iter().enumerate() {
        refused(
            &format!("changed-{number}"),
            &[words, "bundle.json"],
            &|copy| {
                let path = copy.join("bundle.json");
                let mut facts = json(&path);
                facts[field] = value.clone();
                fs::write(&path, facts.to_string()).expect("it is written");
            },
        );
    }
    place.assert_nothing_left();
}

#[test]
fn what_is_neither_a_bundle_nor_a_token_is_refused() {
    let place = Place::new();
    let refused = |arguments: &[&str], words: &[&str]| {
        let ran = place.run(arguments);
        assert_eq!((ran.code, &*ran.stdout), (Some(2), ""), "{ran:#?}");
        for word in words {
            assert!(ran.stderr.contains(word), "{word}: {ran:#?}");
        }
    };
    refused(&["replay", "nothing"], &["nothing", "replay token"]);
    refused(&["replay", "."], &["./bundle.json", "is this a bundle?"]);
    let token = "ext4/two-files/undisturbed/e0/-";
    let help = [
        "no run in runs",
        "--runs",
        "`untorn run two-files --fs ext4`",
    ];
    refused(&["replay", token], &help);
    place.assert_nothing_left();
}

#[test]
fn options_that_cannot_be_followed_are_refused_before_anything_is_mounted() {
    if cannot_run("options_that_cannot_be_followed_are_refused_before_anything_is_mounted") {
        return;
    }
    let place = Place::new();
    let bundle = some_bundle(&place);
    let bundle = bundle.to_string_lossy();
    place.tree("there", &[]);
    let refused = |more: &[&str], word: &str| {
        let ran = place.run(&[&["replay", &*bundle], more].concat());
        assert_eq!((ran.code, &*ran.stdout), (Some(2), ""), "{ran:#?}");
        assert!(ran.stderr.contains(word), "{word}: {ran:#?}");
    };
    refused(&["--extract", "there"], "--extract there: it exists");
    refused(&["--extract", "nowhere/copy"], "--extract nowhere/copy");
    refused(&["--shell"], "--shell needs a terminal");
    place.assert_nothing_left();
}
