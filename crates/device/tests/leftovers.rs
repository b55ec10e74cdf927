//! What a killed harness leaves is found and removed, and what lives is left alone. The harness is
//! this test program itself, started again.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the lint knows tests, and not what they are made of"
)]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use untorn_device::RecordedDisk;
use untorn_device::leftovers::{Leftover, find, remove, scratch_dir};

/// Set for the tests that are the harness of another test.
const HARNESS: &str = "UNTORN_TEST_HARNESS";
/// Begins the line on which a harness says what it made.
const SAYS: &str = "harness: ";

fn is_root(test: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("NOT RUN: {test} needs root");
    }
    root
}

fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < deadline, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Starts a harness and waits until it has said its word.
fn start(test: &str) -> (Child, String) {
    let mut harness = Command::new("/proc/self/exe")
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env(HARNESS, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(harness.stdout.take().unwrap());
    // The test runner's own words may stand before it on the line.
    let said = output
        .lines()
        .find_map(|line| Some(line.unwrap().split_once(SAYS)?.1.to_owned()))
        .unwrap();
    (harness, said)
}

fn is_harness() -> bool {
    std::env::var_os(HARNESS).is_some()
}

fn say_and_wait(word: &str) {
    println!("{SAYS}{word}");
    std::io::stdout().flush().unwrap();
    std::thread::sleep(Duration::from_secs(1000));
}

fn is_bound(device: &Path) -> bool {
    let name = device.file_name().unwrap();
    Path::new("/sys/block").join(name).join("loop").exists()
}

fn find_disk(device: &Path) -> Option<Leftover> {
    find()
        .into_iter()
        .find(|leftover| matches!(leftover, Leftover::Disk { device: of, .. } if of == device))
}

#[test]
#[ignore = "the harness of another test"]
fn harness_with_scratch() {
    if is_harness() {
        let scratch = scratch_dir().unwrap();
        fs::create_dir(scratch.path().join("mnt")).unwrap();
        say_and_wait(&scratch.path().display().to_string());
    }
}

#[test]
fn a_killed_harness_leaves_its_directory() {
    let (mut harness, said) = start("harness_with_scratch");
    let path = PathBuf::from(said);
    let leftover = Leftover::Scratch { path: path.clone() };
    assert!(!find().contains(&leftover));
    harness.kill().unwrap();
    harness.wait().unwrap();
    assert!(find().contains(&leftover));
    remove(&[leftover]).pop().unwrap().unwrap();
    assert!(!path.exists());
}

#[test]
fn a_living_disk_is_left_alone() {
    if !is_root("a_living_disk_is_left_alone") {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let disk = RecordedDisk::new(1 << 20, 4096, 4, scratch.path()).unwrap();
    assert_eq!(find_disk(disk.path()), None);
}

#[test]
#[ignore = "the harness of another test"]
fn harness_with_held_disk() {
    if !is_harness() {
        return;
    }
    let scratch = scratch_dir().unwrap();
    let mut disk = RecordedDisk::new(1 << 20, 4096, 4, scratch.path()).unwrap();
    let device = disk.take_device().unwrap();
    // It outlives the harness, as an agent would that does not get its death signal.
    let mut holder = Command::new("sleep")
        .arg("1000")
        .stdin(Stdio::from(device))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    say_and_wait(&format!("{} {}", disk.path().display(), holder.id()));
    holder.wait().unwrap();
}

#[test]
fn a_disk_held_by_a_stranger_is_unbound_when_the_stranger_ends() {
    if !is_root("a_disk_held_by_a_stranger_is_unbound_when_the_stranger_ends") {
        return;
    }
    let (mut harness, said) = start("harness_with_held_disk");
    let (device, holder) = said.split_once(' ').unwrap();
    let device = Path::new(device);
    assert_eq!(find_disk(device), None);
    harness.kill().unwrap();
    harness.wait().unwrap();
    let leftover = find_disk(device).unwrap();
    let error = remove(&[leftover]).pop().unwrap().unwrap_err();
    assert!(error.to_string().contains(holder), "{error}");
    let holder = rustix::process::Pid::from_raw(holder.parse().unwrap()).unwrap();
    rustix::process::kill_process(holder, rustix::process::Signal::KILL).unwrap();
    eventually("the end of the loop device", || !is_bound(device));
    assert_eq!(find_disk(device), None);
    clean_up_scratch();
}

/// A harness that makes the mistake that [`RecordedDisk::take_device`] is there to prevent: it
/// keeps a disk with dirty pages open which it serves itself. When it is killed, the kernel waits
/// for the pages to be written before it closes the server's end, which was opened earlier.
#[test]
#[ignore = "the harness of another test"]
fn harness_that_waits_for_itself() {
    if !is_harness() {
        return;
    }
    let scratch = scratch_dir().unwrap();
    let mut disk = RecordedDisk::new(1 << 20, 4096, 4, scratch.path()).unwrap();
    let mut device = disk.take_device().unwrap();
    device.write_all(&vec![7; 512 * 1024]).unwrap();
    say_and_wait(&disk.path().display().to_string());
}

#[test]
fn a_server_that_waits_for_itself_is_freed() {
    if !is_root("a_server_that_waits_for_itself_is_freed") {
        return;
    }
    let (mut harness, said) = start("harness_that_waits_for_itself");
    let device = Path::new(&said);
    harness.kill().unwrap();
    eventually("the dying of the harness", || find_disk(device).is_some());
    let leftover = find_disk(device).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    assert!(
        harness.try_wait().unwrap().is_none(),
        "the harness was to be stuck"
    );
    remove(&[leftover]).pop().unwrap().unwrap();
    harness.wait().unwrap();
    eventually("the end of the loop device", || !is_bound(device));
    clean_up_scratch();
}

/// Removes the directories of the killed harnesses.
fn clean_up_scratch() {
    let mut scratch = find();
    scratch.retain(|leftover| matches!(leftover, Leftover::Scratch { .. }));
    for removed in remove(&scratch) {
        removed.unwrap();
    }
}

#[test]
fn an_orphan_of_ours_is_killed_and_no_other_process() {
    // The shell under the program's name, whose hidden subcommand is a script of that name.
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join("untorn");
    fs::copy("/bin/sh", &program).unwrap();
    fs::write(place.path().join("internal"), "while sleep 0.1; do :; done").unwrap();
    let start = |script: &str| {
        let output = Command::new("setsid")
            .args(["sh", "-c", script, "sh"])
            .arg(&program)
            .current_dir(place.path())
            .output()
            .unwrap();
        let pid = String::from_utf8(output.stdout).unwrap();
        pid.trim().parse::<i32>().unwrap()
    };
    let others = start("sh internal agent >/dev/null 2>&1 & echo $!");
    let orphan = start(r#""$1" internal agent >/dev/null 2>&1 & echo $!"#);
    let mut with_parent = Command::new(&program)
        .args(["internal", "agent"])
        .current_dir(place.path())
        .spawn()
        .unwrap();
    let of = |pid: i32| move |leftover: &Leftover| matches!(leftover, Leftover::Process { id, .. } if id.pid == pid);
    eventually("the orphan's finding", || find().iter().any(of(orphan)));
    let found = find();
    assert!(!found.iter().any(of(others)));
    assert!(
        !found
            .iter()
            .any(of(i32::try_from(with_parent.id()).unwrap()))
    );
    let leftover = found.into_iter().find(of(orphan)).unwrap();
    remove(std::slice::from_ref(&leftover))
        .pop()
        .unwrap()
        .unwrap();
    assert!(!find().iter().any(of(orphan)));
    // It is gone, which is no error.
    remove(&[leftover]).pop().unwrap().unwrap();
    with_parent.kill().unwrap();
    with_parent.wait().unwrap();
    let others = rustix::process::Pid::from_raw(others).unwrap();
    rustix::process::kill_process(others, rustix::process::Signal::KILL).unwrap();
}
