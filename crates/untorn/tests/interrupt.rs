//! Ctrl-C and SIGTERM, whenever they come: the run stops, says where the results so far are, and
//! leaves no mount, loop device, process or temporary file.

mod common;

use std::path::PathBuf;
use std::process::{Child, Stdio};

use common::{Place, Ran, agents_of, cannot_run, events, eventually, json, only_run, wait};
use rustix::process::{Pid, Signal, kill_process};

/// A run that is to be stopped.
struct Started<'a> {
    place: &'a Place,
    child: Child,
}

impl<'a> Started<'a> {
    fn new(place: &'a Place, arguments: &[&str]) -> Self {
        let child = place
            .untorn()
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        Self { place, child }
    }

    fn run_folder(&self) -> Option<PathBuf> {
        let runs = std::fs::read_dir(self.place.path("runs")).ok()?;
        runs.flatten().map(|entry| entry.path()).next()
    }

    /// Waits until enough events of one kind have happened.
    fn until(&mut self, event: &str, times: usize) {
        eventually(event, || {
            let folder = self.run_folder();
            let happened = folder.map_or_else(Vec::new, |folder| events(&folder));
            let count = happened.iter().filter(|one| one["event"] == event).count();
            let ended = self.child.try_wait().expect("it can be waited for");
            assert!(ended.is_none(), "it ended before {event} happened");
            count >= times
        });
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).expect("a process number");
        let pid = Pid::from_raw(pid).expect("a process number");
        kill_process(pid, signal).expect("it is still there");
    }

    /// Sends a signal and checks everything that follows from it.
    fn stop(self, signal: Signal) -> Ran {
        self.signal(signal);
        let ran = wait(self.child);
        let (code, name) = if signal == Signal::INT {
            (130, "SIGINT")
        } else {
            (143, "SIGTERM")
        };
        assert_eq!(ran.code, Some(code), "{ran:#?}");
        assert_eq!(ran.stdout, "", "no verdict is printed");
        let last = ran.stderr.lines().last().unwrap_or_default();
        assert!(last.contains(&format!("interrupted by {name}")), "{ran:#?}");

        // The message says where the results so far are, and they are there.
        let run = only_run(&self.place.path("runs"));
        let shown = format!(
            "runs/{}",
            run.file_name().expect("a name").to_string_lossy()
        );
        assert!(last.contains(&shown), "{ran:#?}");
        let certificate = json(&run.join("certificate.json"));
        assert_ne!(certificate["verdict"], "holds");
        assert!(run.join("report.html").exists());
        self.place.assert_nothing_left();
        assert_eq!(
            self.place
                .leftovers()
                .into_iter()
                .find(|one| one.contains("untorn-run-")
                    && one.contains(&*self.place.temporary().to_string_lossy())),
            None
        );
        ran
    }
}

const CERTIFY: [&str; 7] = [
    "certify",
    "--suite",
    "quick",
    "--fs",
    "ext4,xfs,btrfs",
    "--out",
    "runs",
];

/// Stops a run with each of the signals at a moment that `until` waits for.
fn stopped(test: &str, arguments: &[&str], until: impl Fn(&mut Started)) {
    if cannot_run(test) {
        return;
    }
    for signal in [Signal::INT, Signal::TERM] {
        let place = Place::new();
        let mut run = Started::new(&place, arguments);
        until(&mut run);
        run.stop(signal);
    }
}

#[test]
fn while_it_is_set_up() {
    stopped("while_it_is_set_up", &CERTIFY, |run| {
        run.until("run-started", 1);
    });
    stopped("while_it_is_set_up", &CERTIFY, |run| {
        run.until("profile-started", 1);
    });
    stopped("while_it_is_set_up", &CERTIFY, |run| {
        eventually("the start of an agent", || {
            !agents_of(run.child.id()).is_empty()
        });
    });
}

#[test]
fn while_it_goes_on_to_the_next_file_system() {
    stopped(
        "while_it_goes_on_to_the_next_file_system",
        &CERTIFY,
        |run| {
            run.until("profile-started", 2);
        },
    );
}

#[test]
fn while_it_explores() {
    stopped("while_it_explores", &CERTIFY, |run| {
        run.until("case-started", 1);
    });
    stopped("while_it_explores", &CERTIFY, |run| {
        run.until("recording-explored", 3);
    });
    stopped("while_it_explores", &CERTIFY, |run| {
        run.until("violation-found", 2);
    });
}

#[test]
fn while_a_command_is_recorded() {
    if cannot_run("while_a_command_is_recorded") {
        return;
    }
    let arguments = "check --fs ext4 --old old -- sh endless.sh {dir}";
    let arguments: Vec<&str> = arguments.split(' ').collect();
    for signal in [Signal::INT, Signal::TERM] {
        let place = Place::new();
        place.tree("old", &[("file", "old\n")]);
        // It says that it runs, and goes on for ever, with a descendant.
        let script = "echo new > \"$1/file\"\nsleep 1000 &\n: > running\nwait\n";
        place.file("endless.sh", script);
        let run = Started::new(&place, &arguments);
        eventually("the start of the command", || {
            place.path("running").exists()
        });
        run.stop(signal);
    }
}

#[test]
fn more_signals_do_not_cut_the_clean_up_short() {
    if cannot_run("more_signals_do_not_cut_the_clean_up_short") {
        return;
    }
    let place = Place::new();
    let mut run = Started::new(&place, &CERTIFY);
    run.until("recording-explored", 1);
    for _ in 0..5 {
        run.signal(Signal::INT);
    }
    let ran = wait(run.child);
    assert_eq!(ran.code, Some(130), "{ran:#?}");
    place.assert_nothing_left();
}
