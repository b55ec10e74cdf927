//! A harness that is killed with SIGKILL leaves nothing running: here it is this test program
//! itself, started again.
#![allow(
    clippy::unwrap_used,
    reason = "the lint knows tests, and not what they are made of"
)]

mod common;

use std::process::{Command, Stdio};

use common::{eventually, is_root, processes_with, unique_sleep};
use untorn_process::{CommandSpec, HeldSubject, Interrupt, Limits, SubjectCommand, run_command};
use untorn_spec::{TreeSpec, WriterOrder};

const SLEEP_VARIABLE: &str = "UNTORN_TEST_SLEEP";

fn harness(test: &str, sleep: &str) -> std::process::Child {
    Command::new("/proc/self/exe")
        .args(["--exact", test, "--ignored"])
        .env(SLEEP_VARIABLE, sleep)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// Kills the harness once the grandchild is there, and waits for that to vanish.
fn kill_harness(test: &str) {
    let sleep = unique_sleep();
    let mut harness = harness(test, &sleep);
    eventually("the start", || !processes_with(&sleep).is_empty());
    harness.kill().unwrap();
    harness.wait().unwrap();
    eventually("the end", || processes_with(&sleep).is_empty());
}

#[test]
#[ignore = "the harness of another test"]
fn harness_with_command() {
    let Ok(sleep) = std::env::var(SLEEP_VARIABLE) else {
        return;
    };
    let script = format!("setsid sleep {sleep} & sleep 1000");
    let spec = CommandSpec::new("sh", ["-c", &script]);
    run_command(&spec, &Interrupt::detached().unwrap()).unwrap();
}

#[test]
#[ignore = "the harness of another test"]
fn harness_with_subject() {
    let Ok(sleep) = std::env::var(SLEEP_VARIABLE) else {
        return;
    };
    let subject = SubjectCommand {
        program: "sleep".into(),
        args: vec![sleep.into()],
        order: WriterOrder {
            writer: String::new(),
            parent: String::new(),
            target: String::new(),
            tree: TreeSpec {
                target: String::new(),
                count: 0,
                file: Vec::new(),
                absent_at_first: false,
            },
            seed: 0,
        },
        mount_namespace: None,
        limits: Limits::default(),
    };
    let mut held = HeldSubject::spawn(&subject, &Interrupt::detached().unwrap()).unwrap();
    held.next().unwrap();
}

#[test]
fn descendants_of_a_command_die_with_the_harness() {
    if is_root("descendants_of_a_command_die_with_the_harness") {
        kill_harness("harness_with_command");
    }
}

#[test]
fn a_subject_dies_with_the_harness() {
    kill_harness("harness_with_subject");
}
