//! What the tests of this crate share.
#![allow(
    dead_code,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "each test program uses some of it, and it is test code outside of test functions"
)]

pub(crate) mod trace;

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// True when the tests run as root. CI does; elsewhere what needs it says that it was left out.
pub(crate) fn is_root(test: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("NOT RUN: {test} needs root");
    }
    root
}

/// A number of seconds to sleep that no other process of this machine sleeps for, so that a
/// process can be found by it. Numbers of processes are no help: namespaces have their own.
pub(crate) fn unique_sleep() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::SeqCst);
    format!("86400.{}{count:03}", std::process::id())
}

/// Processes that have `word` among the words of their command line, zombies left out.
pub(crate) fn processes_with(word: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap();
    entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        .filter(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0)
                .any(|one| one == word.as_bytes())
        })
        .collect()
}

/// Waits until a condition holds; it must before long.
pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < deadline, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A mount namespace in which an empty tmpfs with a file `inside` is mounted on the directory.
pub(crate) fn mounted_elsewhere(directory: &std::path::Path) -> fs::File {
    std::thread::scope(|scope| {
        let made = scope.spawn(|| {
            use nix::mount::{MsFlags, mount};
            nix::sched::unshare(nix::sched::CloneFlags::CLONE_FS).unwrap();
            nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNS).unwrap();
            let private = MsFlags::MS_PRIVATE | MsFlags::MS_REC;
            mount(None::<&str>, "/", None::<&str>, private, None::<&str>).unwrap();
            let none = MsFlags::empty();
            mount(Some("t"), directory, Some("tmpfs"), none, None::<&str>).unwrap();
            fs::write(directory.join("inside"), "yes").unwrap();
            fs::File::open("/proc/thread-self/ns/mnt").unwrap()
        });
        made.join().unwrap()
    })
}
