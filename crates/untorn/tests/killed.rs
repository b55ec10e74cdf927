//! A run that is killed with SIGKILL: the kernel takes down its agents, mounts and loop devices,
//! and `untorn doctor --clean` removes the one thing that stays, its temporary files.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "the lint knows tests, and not what they are made of"
)]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// The command, with a temporary directory of its own, so that no other run's files are seen.
fn untorn(temporary: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_untorn"));
    command.env("TMPDIR", temporary);
    command
}

fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < deadline, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Children of a process that have got as far as being disk agents.
fn agents_of(harness: u32) -> Vec<u32> {
    let children = format!("/proc/{harness}/task");
    let tasks = fs::read_dir(children).into_iter().flatten().flatten();
    tasks
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|list| {
            let pids = list.split_whitespace().filter_map(|pid| pid.parse().ok());
            pids.collect::<Vec<u32>>()
        })
        .filter(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains("internal\0agent")
        })
        .collect()
}

fn leftovers(temporary: &Path) -> Vec<String> {
    let output = untorn(temporary).args(["doctor", "--json"]).output();
    let report: Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
    let list = report["leftovers"].as_array().unwrap().iter();
    list.map(|one| one.as_str().unwrap().to_owned()).collect()
}

/// Kills a run `after` its agents are there.
fn kill_a_run(after: Duration) {
    let temporary = tempfile::tempdir().unwrap();
    let runs = tempfile::tempdir().unwrap();
    let mut run = untorn(temporary.path())
        .args(["certify", "--suite", "quick", "--fs", "ext4", "--out"])
        .arg(runs.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("the start of an agent", || !agents_of(run.id()).is_empty());
    std::thread::sleep(after);
    let agents = agents_of(run.id());
    assert!(run.try_wait().unwrap().is_none(), "the run was too quick");
    run.kill().unwrap();
    run.wait().unwrap();

    eventually("the end of the agents", || {
        agents
            .iter()
            .all(|pid| !Path::new(&format!("/proc/{pid}")).exists())
    });
    let left = leftovers(temporary.path());
    let is_ours = |one: &String| one.contains(&temporary.path().display().to_string());
    assert!(left.iter().any(is_ours), "{left:?}");
    assert!(
        !left.iter().any(|one| one.contains("loop device")),
        "{left:?}"
    );

    let cleaned = untorn(temporary.path())
        .args(["doctor", "--clean"])
        .status();
    assert!(cleaned.unwrap().success());
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0);
    assert_eq!(leftovers(temporary.path()), [""; 0]);
}

#[test]
fn a_killed_run_leaves_only_what_the_doctor_removes() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("NOT RUN: a_killed_run_leaves_only_what_the_doctor_removes needs root");
        return;
    }
    // While it starts, while it records, and while it explores.
    for after_ms in [0, 100, 700] {
        kill_a_run(Duration::from_millis(after_ms));
    }
}
