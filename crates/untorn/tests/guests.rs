//! Other kernels: what cannot be booted is told with the documented exit code, a guest that goes
//! wrong is killed and its console told, and a run comes out as if it had run here.
//!
//! Tests of the tier `vm` boot guests. They need QEMU, the kernel of `scripts/fetch-kernel
//! debian:6.1`, and the program of `scripts/build-static` by the variable `UNTORN_STATIC`. Where
//! that is missing they say `NOT RUN`, unless `UNTORN_TEST_VM` asks for them: then they fail.

mod common;

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use common::{Place, Ran, cannot_run, events, eventually, json, only_run, ran, wait};
use rustix::process::{Pid, Signal, kill_process};

const USAGE: i32 = 2;
const UNSUPPORTED: i32 = 3;
const INCONCLUSIVE: i32 = 5;

const KERNEL: &str = "debian:6.1";
/// A case that takes a second or two under emulation and must be caught.
const QUICK: &str = "control-per-file-fsync";

/// Folder of the kernel.
fn kernel_folder() -> PathBuf {
    untorn_vm::kernels_dir().join(KERNEL.replace(':', "-"))
}

/// False when a guest cannot be booted here, after saying so.
fn can_boot(test: &str) -> bool {
    let missing = if cannot_run(test) {
        "root"
    } else if untorn_vm::qemu_version().is_err() {
        "QEMU: scripts/setup --vm"
    } else if !kernel_folder().is_dir() {
        "a kernel: scripts/fetch-kernel debian:6.1"
    } else if std::env::var_os("UNTORN_STATIC").is_none() {
        "UNTORN_STATIC: scripts/build-static"
    } else {
        return true;
    };
    assert!(
        std::env::var_os("UNTORN_TEST_VM").is_none(),
        "UNTORN_TEST_VM is set, and {test} needs {missing}"
    );
    // Nobody is left to be told that stderr is closed.
    writeln!(std::io::stderr(), "NOT RUN: {test} needs {missing}").ok();
    false
}

fn expect(place: &Place, ran: &Ran, code: i32, words: &[&str]) {
    assert_eq!(ran.code, Some(code), "{ran:#?}");
    for word in words {
        assert!(ran.stderr.contains(word), "`{word}` is not said: {ran:#?}");
    }
    place.assert_nothing_left();
}

/// A static program of a few machine instructions, for guests that go wrong.
fn program(place: &Place, name: &str, code: &[u8]) -> PathBuf {
    let mut elf = vec![0; 120];
    elf[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    let mut put = |at: usize, bytes: &[u8]| elf[at..at + bytes.len()].copy_from_slice(bytes);
    put(0x10, &[2, 0, 62, 0, 1]);
    // The entry, the program headers behind this header, and their number (elf(5)).
    put(0x18, &0x40_0078_u64.to_le_bytes());
    put(0x20, &64_u64.to_le_bytes());
    put(0x34, &[64, 0, 56, 0, 1]);
    // One segment, readable and executable: the whole file.
    let bytes = 120 + code.len() as u64;
    put(64, &[1, 0, 0, 0, 5]);
    put(80, &0x40_0000_u64.to_le_bytes());
    put(96, &bytes.to_le_bytes());
    put(104, &bytes.to_le_bytes());
    put(112, &4096_u64.to_le_bytes());
    elf.extend(code);
    let path = place.path(name);
    fs::write(&path, elf).expect("a new file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
    path
}

/// Ends at once, with status 7: `mov edi, 7; mov eax, 60; syscall`.
const ENDS: &[u8] = b"\xbf\x07\x00\x00\x00\xb8\x3c\x00\x00\x00\x0f\x05";
/// Never says a word: `jmp` to itself.
const HANGS: &[u8] = b"\xeb\xfe";

#[test]
fn kernels_that_cannot_be_booted_are_told() {
    let place = Place::new();
    let init = program(&place, "init", ENDS);
    let refused = |kernel: &str, code: i32, words: &[&str]| {
        let ran = ran(place
            .untorn()
            .args(["vm", "--kernel", kernel, "--init"])
            .arg(&init)
            .args(["--", "run", QUICK, "--fs", "ext4"]));
        expect(&place, &ran, code, words);
    };
    refused("debian:0.1", USAGE, &["debian:0.1", "scripts/fetch-kernel"]);
    refused("/no/such/image", USAGE, &["/no/such/image", "No such file"]);
    let text = place.file("text", "not a kernel");
    refused(text.to_str().unwrap(), USAGE, &["no header of a bzImage"]);
    let mut arm = vec![0; 64];
    arm[0x38..0x3c].copy_from_slice(b"ARM\x64");
    fs::write(place.path("arm"), arm).unwrap();
    let arm = place.path("arm");
    refused(
        arm.to_str().unwrap(),
        USAGE,
        &["another architecture, aarch64"],
    );
}

#[test]
fn a_kernel_without_a_module_is_told_by_the_modules_name() {
    let place = Place::new();
    if untorn_vm::qemu_version().is_err() {
        eprintln!("NOT RUN: it needs QEMU");
        return;
    }
    let init = program(&place, "init", ENDS);
    let mut head = vec![0; 0x400];
    head[0x1fe..0x200].copy_from_slice(b"\x55\xaa");
    head[0x202..0x208].copy_from_slice(b"HdrS\x0f\x02");
    head[0x236] = 1;
    head[0x20f] = 1;
    head[0x300..0x304].copy_from_slice(b"9.9\0");
    let tree = place.tree("kernel", &[("modules.builtin", "kernel/virtio_pci.ko\n")]);
    fs::write(tree.join("vmlinuz"), head).unwrap();
    let ran = ran(place
        .untorn()
        .args(["vm", "--kernel", "kernel", "--init"])
        .arg(&init)
        .args(["--", "list"]));
    expect(&place, &ran, UNSUPPORTED, &["no module virtio_console"]);
}

#[test]
fn what_helps_is_told_where_something_is_missing_here() {
    let place = Place::new();
    let vm = |init: &Path, path: &str| {
        ran(place
            .untorn()
            .args(["vm", "--kernel", "debian:6.1", "--init"])
            .arg(init)
            .args(["--", "list"])
            .env("PATH", path))
    };
    let dynamic = vm(Path::new("/bin/sh"), "/usr/bin");
    expect(
        &place,
        &dynamic,
        UNSUPPORTED,
        &["linked dynamically", "scripts/build-static"],
    );
    if kernel_folder().is_dir() {
        let init = program(&place, "init", ENDS);
        let no_qemu = vm(&init, "/nonexistent");
        expect(
            &place,
            &no_qemu,
            UNSUPPORTED,
            &["qemu", "scripts/setup --vm"],
        );
    }
}

#[test]
fn a_guest_that_goes_wrong_is_killed_and_its_console_told() {
    if !can_boot("a_guest_that_goes_wrong_is_killed_and_its_console_told") {
        return;
    }
    let place = Place::new();
    let vm = |options: &[&str], init: Option<&Path>| {
        let mut command = place.untorn();
        command
            .args(["vm", "--kernel", KERNEL, "--accel", "tcg"])
            .args(options);
        if let Some(init) = init {
            command.arg("--init").arg(init);
        }
        ran(command.args(["--", "list"]))
    };
    let panics = vm(&[], Some(&program(&place, "ends", ENDS)));
    expect(
        &place,
        &panics,
        INCONCLUSIVE,
        &["panicked", "Attempted to kill init!"],
    );
    let hangs = vm(&["--silence", "20"], Some(&program(&place, "hangs", HANGS)));
    expect(
        &place,
        &hangs,
        INCONCLUSIVE,
        &["nothing was heard of it for 20 s"],
    );
    let poor = vm(&["--memory", "96"], None);
    expect(&place, &poor, INCONCLUSIVE, &["panicked", "Kernel panic"]);
}

#[test]
fn a_run_comes_out_as_if_it_had_run_here() {
    if !can_boot("a_run_comes_out_as_if_it_had_run_here") {
        return;
    }
    let place = Place::new();
    let run = [
        "run",
        "two-files",
        QUICK,
        "--fs",
        "ext4",
        "--seed",
        "1",
        "--out",
    ];
    let here = place.run(&[&run[..], &["here"]].concat());
    let vm = ["vm", "--kernel", KERNEL, "--"];
    let there = place.run(&[&vm[..], &run[..], &["there"]].concat());
    assert_eq!((here.code, there.code), (Some(0), Some(0)), "{there:#?}");
    let certificate = |runs: &str| json(&only_run(&place.path(runs)).join("certificate.json"));
    let (here, there) = (certificate("here"), certificate("there"));
    assert_eq!(
        there["kernel"]["guest"].as_str().map(|guest| &guest[..4]),
        Some("QEMU")
    );
    let release = there["kernel"]["release"].as_str().unwrap();
    assert!(
        release.starts_with("6.1.") && there["kernel"] != here["kernel"],
        "{release}"
    );
    let verdicts = |certificate: &serde_json::Value| {
        let file_system = &certificate["filesystems"][0];
        ["verdict", "scenarios", "controls"].map(|part| {
            let part = &file_system[part];
            let first = &part[0];
            let parts = [
                part,
                &first["verdict"],
                &first["exhaustive"],
                &first["caught"],
            ];
            parts.map(|value| {
                if value.is_array() {
                    String::new()
                } else {
                    value.to_string()
                }
            })
        })
    };
    assert_eq!(verdicts(&there), verdicts(&here));
    assert_eq!(there["filesystems"][0]["verdict"], "holds");

    // The bundle came out too, and the printed command replays it, under that kernel.
    let run = only_run(&place.path("there"));
    let found = events(&run)
        .into_iter()
        .find(|event| event["event"] == "violation-found")
        .expect("the control was caught");
    let command = found["replay"].as_str().expect("a command");
    assert!(
        command.contains("vm --kernel debian:6.1 -- replay"),
        "{command}"
    );
    let replayed = ran(place.command("/bin/sh").args(["-c", command]));
    assert_eq!(replayed.code, Some(1), "{replayed:#?}");
    assert!(
        replayed.stdout.contains("the same tree, byte for byte"),
        "{replayed:#?}"
    );
    place.assert_nothing_left();
}

/// A matrix of one kernel that is under way.
struct Certifying<'a> {
    place: &'a Place,
    child: Child,
}

impl<'a> Certifying<'a> {
    fn new(place: &'a Place) -> Self {
        let child = place
            .untorn()
            .args([
                "certify", "--suite", "quick", "--kernel", KERNEL, "--fs", "ext4",
            ])
            .args(["--workers", "1", "--out", "out"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        Self { place, child }
    }

    fn folder(&self) -> PathBuf {
        self.place.path("out").join("debian-6.1")
    }

    /// Waits until so many cases have begun.
    fn until_case(&mut self, count: usize) {
        eventually("a case", || {
            let ended = self.child.try_wait().expect("it can be waited for");
            assert!(ended.is_none(), "it ended early");
            let runs = fs::read_dir(self.folder()).into_iter().flatten().flatten();
            let events = runs
                .map(|run| run.path())
                .filter(|run| run.is_dir())
                .map(|run| events(&run));
            let started = |event: &serde_json::Value| event["event"] == "case-started";
            events.flatten().filter(started).count() >= count
        });
    }

    /// The emulator.
    fn guest(&self) -> Option<i32> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id())).ok()?;
        let children = tasks
            .flatten()
            .filter_map(|task| fs::read_to_string(task.path().join("children")).ok())
            .collect::<Vec<_>>()
            .join(" ");
        let mut children = children
            .split_whitespace()
            .filter_map(|pid| pid.parse().ok());
        children.find(|pid: &i32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.starts_with(b"qemu-system")
        })
    }
}

fn signal(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).expect("a process number"), signal).expect("it is there");
}

#[test]
fn a_guest_that_dies_loses_one_case_and_the_rest_goes_on() {
    if !can_boot("a_guest_that_dies_loses_one_case_and_the_rest_goes_on") {
        return;
    }
    let place = Place::new();
    let mut certifying = Certifying::new(&place);
    certifying.until_case(2);
    signal(certifying.guest().expect("a guest"), Signal::KILL);
    let folder = certifying.folder();
    let ran = wait(certifying.child);
    // The case that was lost is a control, and one that was not caught breaks the harness.
    assert!(matches!(ran.code, Some(4 | INCONCLUSIVE)), "{ran:#?}");
    assert!(ran.stderr.contains("ended unexpectedly"), "{ran:#?}");
    let certificate = json(&folder.join("certificate.json"));
    let file_system = &certificate["filesystems"][0];
    let entries =
        ["scenarios", "controls"].map(|part| file_system[part].as_array().unwrap().clone());
    let verdicts: Vec<String> = entries
        .iter()
        .flatten()
        .map(|entry| entry["verdict"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(verdicts.len(), 7, "{verdicts:?}");
    let lost = verdicts
        .iter()
        .filter(|verdict| *verdict == "inconclusive")
        .count();
    assert_eq!(lost, 1, "{verdicts:?}");
    let matrix = json(&place.path("out").join("matrix.json"));
    assert_eq!(matrix["kernels"][0]["guests"], 2);
    assert_eq!(matrix["kernels"][0]["cells"][0]["controls_caught"], 5);
    place.assert_nothing_left();
}

#[test]
fn no_guest_outlives_the_harness() {
    if !can_boot("no_guest_outlives_the_harness") {
        return;
    }
    let place = Place::new();
    let mut certifying = Certifying::new(&place);
    certifying.until_case(1);
    signal(i32::try_from(certifying.child.id()).unwrap(), Signal::INT);
    let interrupted = wait(certifying.child);
    assert_eq!(interrupted.code, Some(130), "{interrupted:#?}");
    place.assert_nothing_left();

    let place = Place::new();
    let mut certifying = Certifying::new(&place);
    certifying.until_case(1);
    let guest = certifying.guest().expect("a guest");
    certifying.child.kill().expect("it is there");
    certifying.child.wait().expect("it ends");
    eventually("the end of the guest", || {
        !Path::new(&format!("/proc/{guest}")).exists()
    });
    place.run(&["doctor", "--clean"]);
    place.assert_nothing_left();
}
