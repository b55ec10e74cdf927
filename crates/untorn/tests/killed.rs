//! A run that is killed with SIGKILL: the kernel takes down its agents, mounts and loop devices,
//! and `untorn doctor --clean` removes the one thing that stays, its temporary files.

mod common;

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use common::{Place, agents_of, cannot_run, eventually};

/// Kills a run `after` its agents are there.
fn kill_a_run(after: Duration) {
    let place = Place::new();
    let mut run = place
        .untorn()
        .args(["certify", "--suite", "quick", "--fs", "ext4,xfs,btrfs"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    eventually("the start of an agent", || !agents_of(run.id()).is_empty());
    std::thread::sleep(after);
    let agents = agents_of(run.id());
    assert!(
        run.try_wait().expect("it can be waited for").is_none(),
        "the run was too quick"
    );
    run.kill().expect("it is there");
    run.wait().expect("it can be waited for");

    eventually("the end of the agents", || {
        agents
            .iter()
            .all(|pid| !Path::new(&format!("/proc/{pid}")).exists())
    });
    // Other runs may be killed at the same time.
    let temporary = place.temporary().display().to_string();
    let left = || {
        let mut left = place.leftovers();
        left.retain(|one| one.contains(&temporary));
        left
    };
    assert_eq!(left().len(), 1, "{:?}", place.leftovers());
    let cleaned = place.run(&["doctor", "--clean"]);
    assert_eq!(cleaned.code, Some(0), "{cleaned:#?}");
    assert!(cleaned.stdout.contains(&temporary), "{cleaned:#?}");
    assert_eq!(left(), [""; 0]);
    place.assert_nothing_left();
}

#[test]
fn a_killed_run_leaves_only_what_the_doctor_removes() {
    if cannot_run("a_killed_run_leaves_only_what_the_doctor_removes") {
        return;
    }
    // While it starts, while it records, and while it explores.
    for after_ms in [0, 100, 700] {
        kill_a_run(Duration::from_millis(after_ms));
    }
}
