//! The quick suite certifies the kernel that this runs on, and says so in files that others read.

mod common;

use common::{Place, cannot_run, json, only_run};
use serde_json::Value;

/// What a control must show, by file system.
fn kinds(control: &str) -> &'static [&'static str] {
    match control {
        "control-exchange-without-fsync" => &["empty"],
        "control-exchange-without-parent-fsync" => &["lost-acknowledged"],
        "control-per-file-fsync" => &["mixed"],
        "control-per-file-without-fsync" => &["empty", "mixed"],
        "control-two-renames" => &["missing"],
        "control-remove-then-write" => &["missing", "empty"],
        other => panic!("a control that this test does not know: {other}"),
    }
}

fn list(value: &Value) -> &[Value] {
    value
        .as_array()
        .unwrap_or_else(|| panic!("a list: {value}"))
}

fn check_filesystem(entry: &Value) {
    assert_eq!(entry["verdict"], "holds", "{entry:#}");
    let scenarios = list(&entry["scenarios"]);
    assert_eq!(scenarios.len(), 1);
    let two_files = &scenarios[0];
    assert_eq!(two_files["name"], "two-files");
    assert_eq!(two_files["writer"], "atomicdir");
    assert_eq!(two_files["verdict"], "holds");
    assert_eq!(two_files["exhaustive"], true);
    assert_eq!(two_files["coverage"].as_f64(), Some(1.0));
    assert_eq!(two_files["violations"], Value::Array(Vec::new()));
    let outcomes = two_files["outcomes"].as_object().expect("outcomes");
    let outcomes: Vec<&String> = outcomes.keys().collect();
    assert_eq!(outcomes, ["new", "old"]);
    assert!(two_files["recordings"].as_u64() > Some(10));
    assert!(two_files["recoveries"].as_u64() > Some(10));

    let controls = list(&entry["controls"]);
    assert_eq!(controls.len(), 6);
    for control in controls {
        let name = control["name"].as_str().expect("a name");
        assert_eq!(control["caught"], true, "{control:#}");
        let found: Vec<&str> = list(&control["violations"])
            .iter()
            .map(|violation| violation["kind"].as_str().expect("a kind"))
            .collect();
        let due = kinds(name);
        assert!(
            due.iter().any(|kind| found.contains(kind)),
            "{name} on {}: {found:?}",
            entry["profile"]
        );
        // What was stopped early never claims to be complete.
        assert!(control["exhaustive"] == true || control["coverage"].as_f64() < Some(1.0));
    }
}

#[test]
fn the_quick_suite_holds_on_this_kernel() {
    if cannot_run("the_quick_suite_holds_on_this_kernel") {
        return;
    }
    let place = Place::new();
    let arguments = "certify --suite quick --fs ext4,xfs,btrfs --workers 2 --out out";
    let ran = place.run(&arguments.split(' ').collect::<Vec<_>>());
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    place.assert_nothing_left();

    let certificate = json(&place.path("out/certificate.json"));
    assert_eq!(certificate["verdict"], "holds");
    assert_eq!(certificate["suite"], "quick");
    assert_eq!(certificate["format"]["name"], "untorn-certificate");
    let filesystems = list(&certificate["filesystems"]);
    let profiles: Vec<&Value> = filesystems.iter().map(|entry| &entry["profile"]).collect();
    assert_eq!(profiles, ["ext4", "xfs", "btrfs"]);
    for entry in filesystems {
        check_filesystem(entry);
    }

    // The run folder holds everything, and stdout says where.
    let run = only_run(&place.path("out"));
    for file in [
        "manifest.json",
        "events.jsonl",
        "certificate.json",
        "junit.xml",
        "report.html",
    ] {
        let length = std::fs::metadata(run.join(file)).map(|metadata| metadata.len());
        assert!(length.is_ok_and(|length| length > 100), "{file}");
    }
    assert_eq!(json(&run.join("certificate.json")), certificate);
    assert_eq!(
        json(&run.join("manifest.json"))["run_id"],
        certificate["run_id"]
    );
    let name = run.file_name().expect("a name").to_string_lossy();
    assert!(
        ran.stdout.contains("out/certificate.json"),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains(&*name), "{}", ran.stdout);
    // Controls that were caught are no news: they are told by `report --format stories`.
    assert!(!ran.stdout.contains(" replay "), "{}", ran.stdout);

    reports_can_be_made_again(&place, &run);
}

/// Events are all that a report needs.
fn reports_can_be_made_again(place: &Place, run: &std::path::Path) {
    let report = |format: &str| {
        let ran = place.run(&["report", "latest", "--runs", "out", "--format", format]);
        assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{format}");
        ran.stdout
    };
    let written = |name: &str| std::fs::read_to_string(run.join(name)).expect(name);
    assert_eq!(report("json"), written("certificate.json"));
    assert_eq!(report("junit"), written("junit.xml"));
    assert_eq!(report("html"), written("report.html"));
    let stories = report("stories");
    let told = stories
        .lines()
        .filter(|line| line.starts_with("violation: "))
        .count();
    assert!(told >= 18, "{told} stories");
    assert!(report("table").contains("verdict: holds"));
}
