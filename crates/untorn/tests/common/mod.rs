//! What the tests that run the built command share: a place for each, and what must not be left.
#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(clippy::print_stderr, reason = "a test says that it was not run")]

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Far longer than anything takes on a busy machine.
const PATIENCE: Duration = Duration::from_mins(3);

/// True when this is no root, after saying so: a test never passes for something else.
#[must_use]
pub(crate) fn cannot_run(test: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("NOT RUN: {test} needs root");
    }
    !root
}

/// Waits until something is so.
pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A working directory and a temporary directory of one test's own. Whatever a run of the command
/// makes is recognised by them, however many others run at the time.
pub(crate) struct Place {
    work: tempfile::TempDir,
    temporary: tempfile::TempDir,
    /// Loop devices that nobody held when the test began.
    orphans: Vec<PathBuf>,
}

/// What a command came to.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        let directory = || tempfile::tempdir().expect("a temporary directory");
        Self {
            work: directory(),
            temporary: directory(),
            orphans: orphans(),
        }
    }

    /// A path in the working directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.work.path().join(name)
    }

    /// The temporary directory.
    pub(crate) fn temporary(&self) -> &Path {
        self.temporary.path()
    }

    /// A directory with files in the working directory.
    pub(crate) fn tree(&self, name: &str, files: &[(&str, &str)]) -> PathBuf {
        let top = self.path(name);
        fs::create_dir(&top).expect("a new directory");
        for (file, content) in files {
            fs::write(top.join(file), content).expect("a new file");
        }
        top
    }

    /// A file in the working directory.
    pub(crate) fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).expect("a new file");
        path
    }

    /// Any program, in this place.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.work.path())
            .env("TMPDIR", self.temporary.path())
            .stdin(Stdio::null());
        command
    }

    /// The command under test, in this place.
    pub(crate) fn untorn(&self) -> Command {
        self.command(env!("CARGO_BIN_EXE_untorn"))
    }

    /// Runs the command under test to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        ran(self.untorn().args(arguments))
    }

    /// Processes of a run in this place that still live: they have its environment.
    fn processes(&self) -> Vec<String> {
        let mark = format!("TMPDIR={}", self.temporary.path().display());
        let is_ours = |process: &Path| {
            fs::read(process.join("environ")).is_ok_and(|environment| {
                environment
                    .split(|byte| *byte == 0)
                    .any(|variable| variable == mark.as_bytes())
            })
        };
        let all = fs::read_dir("/proc").expect("/proc").flatten();
        all.map(|entry| entry.path())
            .filter(|process| is_ours(process))
            .map(|process| {
                let line = fs::read(process.join("cmdline")).unwrap_or_default();
                let line = String::from_utf8_lossy(&line).replace('\0', " ");
                format!("process {}: {line}", process.display())
            })
            .collect()
    }

    /// What a run in this place has left. What the kernel takes down by itself may still be there
    /// for a moment.
    fn left(&self) -> Vec<String> {
        let mut left = self.processes();
        let entries = fs::read_dir(self.temporary.path()).expect("the temporary directory");
        left.extend(
            entries
                .flatten()
                .map(|entry| entry.path().display().to_string()),
        );
        let mounts = fs::read_to_string("/proc/self/mountinfo").expect("/proc");
        let own = self.temporary.path().display().to_string();
        left.extend(
            mounts
                .lines()
                .filter(|line| line.contains(&own))
                .map(str::to_owned),
        );
        let new = orphans()
            .into_iter()
            .filter(|one| !self.orphans.contains(one));
        left.extend(new.map(|device| format!("{} without a holder", device.display())));
        left
    }

    /// No process, mount, loop device or temporary file stays.
    pub(crate) fn assert_nothing_left(&self) {
        let deadline = Instant::now() + PATIENCE;
        let mut left = self.left();
        while !left.is_empty() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
            left = self.left();
        }
        assert!(left.is_empty(), "left behind: {left:#?}");
    }

    /// What `untorn doctor` finds left by killed runs.
    pub(crate) fn leftovers(&self) -> Vec<String> {
        let output = self.untorn().args(["doctor", "--json"]).output();
        let output = output.expect("the doctor starts");
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let list = report["leftovers"].as_array().expect("a list").iter();
        list.map(|one| one.as_str().expect("text").to_owned())
            .collect()
    }
}

/// Runs a command to its end.
pub(crate) fn ran(command: &mut Command) -> Ran {
    let output = command.output().expect("it starts");
    ended(output.status, &output.stdout, &output.stderr)
}

fn ended(status: ExitStatus, stdout: &[u8], stderr: &[u8]) -> Ran {
    Ran {
        code: status.code(),
        stdout: String::from_utf8(stdout.to_vec()).expect("stdout is UTF-8"),
        stderr: String::from_utf8(stderr.to_vec()).expect("stderr is UTF-8"),
    }
}

/// Waits for the end of a child whose output is piped.
pub(crate) fn wait(child: Child) -> Ran {
    let output = child.wait_with_output().expect("it can be waited for");
    ended(output.status, &output.stdout, &output.stderr)
}

/// Children of a process that have got as far as being disk agents.
pub(crate) fn agents_of(harness: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{harness}/task"));
    tasks
        .into_iter()
        .flatten()
        .flatten()
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

/// Loop devices that are bound and held open by no process. Those of a living harness are always
/// held by it or by its agent.
fn orphans() -> Vec<PathBuf> {
    let bound: Vec<PathBuf> = fs::read_dir("/sys/block")
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.path().join("loop/backing_file").exists())
        .map(|entry| Path::new("/dev").join(entry.file_name()))
        .collect();
    let held = held_devices();
    bound
        .into_iter()
        .filter(|device| !held.contains(device))
        .collect()
}

/// Loop devices that some process has open.
fn held_devices() -> Vec<PathBuf> {
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    processes
        .filter_map(|process| fs::read_dir(process.path().join("fd")).ok())
        .flatten()
        .filter_map(|fd| fs::read_link(io::Result::ok(fd)?.path()).ok())
        .filter(|target| target.to_string_lossy().starts_with("/dev/loop"))
        .collect()
}

/// A file of JSON.
pub(crate) fn json(path: &Path) -> Value {
    let text = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The one run folder in a folder of runs.
pub(crate) fn only_run(runs: &Path) -> PathBuf {
    let entries = fs::read_dir(runs).unwrap_or_else(|error| panic!("{}: {error}", runs.display()));
    let mut folders: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.is_dir())
        .collect();
    assert_eq!(folders.len(), 1, "{folders:?}");
    folders.remove(0)
}

/// Events of a run so far, without a last line that is being written.
pub(crate) fn events(run: &Path) -> Vec<Value> {
    let text = fs::read_to_string(run.join("events.jsonl")).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let lines = whole.lines().filter(|line| !line.is_empty());
    lines
        .map(|line| serde_json::from_str(line).expect("an event is JSON"))
        .collect()
}
