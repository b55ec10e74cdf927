//! What list, doctor and report print.

mod common;

use std::fs;

use common::{Place, Ran};
use serde_json::Value;

fn succeeds(ran: &Ran) -> &str {
    assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{ran:#?}");
    &ran.stdout
}

fn names(list: &Value) -> Vec<&str> {
    let list = list.as_array().expect("a list").iter();
    list.map(|one| one["name"].as_str().expect("a name"))
        .collect()
}

#[test]
fn list_names_everything_that_can_be_named() {
    let place = Place::new();
    let (text, json) = (place.run(&["list"]), place.run(&["list", "--json"]));
    let (text, json) = (succeeds(&text), succeeds(&json));
    let json: Value = serde_json::from_str(json).expect("JSON");
    for (section, title, least) in [
        ("suites", "Suites", 3),
        ("scenarios", "Scenarios", 12),
        ("writers", "Writers", 8),
        ("profiles", "File-system profiles", 11),
    ] {
        let names = names(&json[section]);
        assert!(names.len() >= least, "{section}: {names:?}");
        let titled = text.lines().position(|line| line == title);
        let rows: Vec<&str> = text
            .lines()
            .skip(titled.expect(title) + 1)
            .take_while(|line| !line.is_empty())
            .collect();
        assert_eq!(rows.len(), names.len(), "{section}");
        for (row, name) in rows.iter().zip(&names) {
            let (shown, about) = row.trim_start().split_once(' ').expect("two columns");
            assert_eq!(shown, *name);
            assert!(about.trim().len() > 10, "{row}");
        }
    }
    // Whatever a suite names is there.
    let scenarios = names(&json["scenarios"]);
    for suite in json["suites"].as_array().expect("a list") {
        for name in suite["scenarios"].as_array().expect("a list") {
            assert!(
                scenarios.contains(&name.as_str().expect("a name")),
                "{name}"
            );
        }
    }
}

#[test]
fn the_doctor_tells_the_same_in_both_forms() {
    let place = Place::new();
    let (text, json) = (place.run(&["doctor"]), place.run(&["doctor", "--json"]));
    assert_eq!(text.code, json.code);
    let report: Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert!(
        report["kernel"]
            .as_str()
            .expect("text")
            .starts_with("Linux ")
    );
    for capability in report["capabilities"].as_array().expect("a list") {
        let name = capability["name"].as_str().expect("a name");
        let line = text
            .stdout
            .lines()
            .find(|line| line.split_whitespace().nth(1) == Some(name));
        let line = line.unwrap_or_else(|| panic!("{name}: {}", text.stdout));
        let present = capability["present"] == true;
        assert_eq!(line.trim_start().starts_with("present"), present, "{line}");
        // What is missing comes with what would help.
        assert_eq!(capability["help"].is_string(), !present, "{capability}");
        assert!(
            capability["purpose"]
                .as_str()
                .is_some_and(|text| text.len() > 5)
        );
    }
    let profiles = report["profiles"].as_array().expect("a list");
    let supported = |profile: &&Value| profile["supported"] == true;
    let can_run = text.stdout.matches("  can run  ").count();
    assert_eq!(profiles.iter().filter(supported).count(), can_run);
    let default_missing = profiles
        .iter()
        .any(|profile| profile["default"] == true && profile["supported"] == false);
    assert_eq!(text.code, Some(if default_missing { 3 } else { 0 }));
}

#[test]
fn the_doctor_has_nothing_to_clean_in_an_empty_place() {
    let place = Place::new();
    // Runs of others may have been killed at this moment; what is here is here.
    let cleaned = place.run(&["doctor", "--clean"]);
    assert_eq!(cleaned.code, Some(0), "{cleaned:#?}");
    assert!(!cleaned.stdout.is_empty());
    place.assert_nothing_left();
}

/// Events as a run writes them, made by hand: two profiles, one of which this machine lacks.
fn recorded(place: &Place, name: &str) {
    let run = place.path("runs").join(name);
    fs::create_dir_all(&run).expect("a run folder");
    let events = [
        r#"{"event":"run-started","run_id":"NAME","tool_version":"0.1.0","tool_commit":"unknown","kernel_release":"6.1.0","kernel_version":"1","machine":"x86_64","seed":7,"suite":"quick","workers":2}"#,
        r#"{"event":"profile-started","profile":"ext4","mkfs":["mkfs.ext4"],"mount_options":"","unit":4096,"expected":"holds"}"#,
        r#"{"event":"profile-unsupported","profile":"ext4","reason":"no loop device is free"}"#,
        r#"{"event":"run-finished","seconds":0.5}"#,
    ];
    let text: String = events
        .iter()
        .map(|event| event.replace("NAME", name) + "\n")
        .collect();
    fs::write(run.join("events.jsonl"), text).expect("events");
}

#[test]
fn report_finds_runs_by_any_name() {
    let place = Place::new();
    let report = |arguments: &[&str]| place.run(&[&["report"], arguments].concat());
    for name in [
        "20260101T000000Z-aaaa",
        "20260102T000000Z-bbbb",
        "20260102T000001Z-cccc",
    ] {
        recorded(&place, name);
    }
    let run_id = |arguments: &[&str]| {
        let ran = report(&[arguments, &["--format", "json"]].concat());
        let certificate: Value = serde_json::from_str(succeeds(&ran)).expect("JSON");
        assert_eq!(certificate["verdict"], "unsupported");
        certificate["run_id"].as_str().expect("text").to_owned()
    };
    assert_eq!(run_id(&[]), "20260102T000001Z-cccc");
    assert_eq!(run_id(&["latest"]), "20260102T000001Z-cccc");
    assert_eq!(run_id(&["20260101"]), "20260101T000000Z-aaaa");
    assert_eq!(
        run_id(&["runs/20260102T000000Z-bbbb"]),
        "20260102T000000Z-bbbb"
    );

    let several = report(&["20260102"]);
    assert_eq!(several.code, Some(2));
    assert!(several.stderr.contains("give more of it"), "{several:#?}");
    let none = report(&["2027"]);
    assert_eq!(none.code, Some(2));
    assert!(
        none.stderr.contains("no run in runs begins with `2027`"),
        "{none:#?}"
    );

    let table = report(&[]);
    assert!(
        succeeds(&table).contains("no loop device is free"),
        "{table:#?}"
    );
    assert!(
        succeeds(&table).contains("verdict: unsupported"),
        "{table:#?}"
    );
    let junit = report(&["--format", "junit"]);
    assert!(succeeds(&junit).starts_with("<?xml"), "{junit:#?}");
    let html = report(&["--format", "html"]);
    assert!(succeeds(&html).contains("</html>"), "{html:#?}");
    assert_eq!(succeeds(&report(&["--format", "stories"])), "");
}

#[test]
fn report_survives_a_last_line_that_was_cut_off_and_refuses_garbage() {
    let place = Place::new();
    recorded(&place, "20260101T000000Z-aaaa");
    let path = place.path("runs/20260101T000000Z-aaaa/events.jsonl");
    let whole = fs::read_to_string(&path).expect("events");
    fs::write(&path, &whole[..whole.len() - 9]).expect("events");
    let ran = place.run(&["report", "--format", "json"]);
    let certificate: Value = serde_json::from_str(succeeds(&ran)).expect("JSON");
    assert_ne!(certificate["verdict"], "holds");

    fs::write(&path, format!("garbage\n{whole}")).expect("events");
    let ran = place.run(&["report"]);
    assert_eq!((ran.code, &*ran.stdout), (Some(2), ""), "{ran:#?}");
    assert!(ran.stderr.contains("events.jsonl"), "{ran:#?}");
}
