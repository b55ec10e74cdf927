//! The built-in scenarios, suites and profiles keep what the design promises.

use std::collections::BTreeSet;
use std::path::Path;

use untorn_spec::{
    Expected, PROFILES, ProfileListError, ViolationKind, profile, profiles_from_list, scenario,
    scenarios, schema, suite, suites, writer,
};

/// The folder of scenario files.
fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios"))
}

/// Names of the TOML files in a folder, without their ending.
fn files(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).expect("the folder is there");
    let entries = entries.map(|entry| entry.expect("the folder can be read").path());
    entries
        .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect()
}

#[test]
fn every_file_is_built_in_under_its_own_name() {
    let names: BTreeSet<String> = scenarios().iter().map(|known| known.name.clone()).collect();
    assert_eq!(names, files(folder()));
    let names: BTreeSet<String> = suites().iter().map(|known| known.name.clone()).collect();
    assert_eq!(names, files(&folder().join("suites")));
}

#[test]
fn the_published_schema_is_the_code() {
    let path = folder().join("scenario.schema.json");
    let now = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    if std::env::var_os("UPDATE").is_some_and(|value| value == "1") {
        std::fs::write(&path, &now).unwrap();
    }
    let published = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        published == now,
        "{} is not what the code says; renew it by: UPDATE=1 cargo test -p untorn-spec",
        path.display()
    );
}

#[test]
fn a_control_is_a_wrong_writer_and_a_wrong_writer_is_a_control() {
    for scenario in scenarios() {
        let correct = writer(&scenario.writer).unwrap().correct;
        assert_eq!(scenario.control.is_none(), correct, "{}", scenario.name);
        if !correct {
            assert_eq!(scenario.name, format!("control-{}", scenario.writer));
        }
    }
}

#[test]
fn controls_show_the_kinds_that_were_measured() {
    use ViolationKind::{Empty, LostAcknowledged, Missing, Mixed};
    for (name, kinds) in [
        ("control-exchange-without-fsync", vec![Empty]),
        (
            "control-exchange-without-parent-fsync",
            vec![LostAcknowledged],
        ),
        ("control-per-file-fsync", vec![Mixed]),
        ("control-per-file-without-fsync", vec![Empty, Mixed]),
        ("control-two-renames", vec![Missing]),
        ("control-remove-then-write", vec![Missing, Empty]),
    ] {
        assert_eq!(
            scenario(name).unwrap().control.as_ref().unwrap().kinds,
            kinds,
            "{name}"
        );
    }
}

#[test]
fn expectations_follow_control_and_profile() {
    let expected = |name, on| scenario(name).unwrap().expected_on(profile(on).unwrap());
    assert_eq!(expected("two-files", "ext4"), Expected::Holds);
    assert_eq!(expected("two-files", "ext4-nobarrier"), Expected::Violated);
    assert_eq!(expected("two-files", "ext4-no-journal"), Expected::Violated);
    assert_eq!(expected("control-two-renames", "ext4"), Expected::Violated);
    let control = scenario("control-exchange-without-fsync").unwrap();
    for (name, must) in [
        ("ext4", true),
        ("xfs-512", true),
        ("btrfs", true),
        ("ext4-nodelalloc", false),
        ("ext4-data-journal", false),
    ] {
        assert_eq!(
            control.must_be_caught_on(profile(name).unwrap()),
            must,
            "{name}"
        );
    }
    let twenty = scenario("twenty-files").unwrap();
    assert!(twenty.is_for(profile("xfs").unwrap()));
    assert!(!twenty.is_for(profile("xfs-512").unwrap()));
}

#[test]
fn suites_hold_what_they_promise() {
    let names = |name| suite(name).unwrap().scenarios.clone();
    let quick = names("quick");
    let controls = scenarios().iter().filter(|known| known.control.is_some());
    for control in controls {
        assert!(quick.contains(&control.name), "{}", control.name);
    }
    assert_eq!(quick.len(), 7, "two-files and six controls");
    let standard = names("standard");
    assert!(quick.iter().all(|name| standard.contains(name)));
    assert_eq!(standard.len(), 11);
    let profiles = |name| -> Vec<&str> {
        let profiles = suite(name).unwrap().default_profiles();
        profiles.iter().map(|profile| profile.name).collect()
    };
    assert_eq!(profiles("quick"), ["ext4", "xfs", "btrfs"]);
    assert_eq!(profiles("standard"), ["ext4", "xfs", "xfs-512", "btrfs"]);
    assert_eq!(profiles("filesystems").len(), PROFILES.len());
    for suite in suites() {
        assert_eq!(suite.scenarios().len(), suite.scenarios.len());
    }
}

#[test]
fn every_profile_of_a_suite_has_a_correct_writer_and_a_control() {
    for suite in suites() {
        for profile in suite.default_profiles() {
            let mut here = suite.scenarios();
            here.retain(|scenario| scenario.is_for(profile));
            let controls = here.iter().filter(|known| known.control.is_some()).count();
            assert!(controls > 0 && controls < here.len(), "{}", profile.name);
        }
    }
}

#[test]
fn lists_of_profiles() {
    let names = |list| -> Vec<&str> {
        let profiles = profiles_from_list(list).unwrap();
        profiles.iter().map(|profile| profile.name).collect()
    };
    assert_eq!(names("xfs,ext4"), ["xfs", "ext4"]);
    assert_eq!(names(" ext4 , ext4 "), ["ext4"]);
    assert_eq!(names("all").len(), PROFILES.len());
    assert_eq!(names("btrfs,all")[0], "btrfs");
    let error = profiles_from_list("ext4,ext3").unwrap_err();
    assert_eq!(
        error,
        ProfileListError::Unknown {
            name: "ext3".to_owned()
        }
    );
    assert_eq!(
        error.to_string(),
        "unknown file-system profile `ext3`: did you mean `ext4`? known: ext4, ext4-data-journal, \
         ext4-data-writeback, ext4-fast-commit, ext4-nodelalloc, ext4-noauto-da-alloc, \
         ext4-no-journal, ext4-nobarrier, xfs, xfs-512, btrfs"
    );
    for list in ["", "ext4,", ",xfs"] {
        let error = profiles_from_list(list).unwrap_err();
        assert!(matches!(error, ProfileListError::Empty { .. }), "{list}");
    }
}
