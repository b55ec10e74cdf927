//! Real signals. They are the whole process's, so this program has one test.
#![allow(
    clippy::unwrap_used,
    reason = "the lint knows tests, and not what they are made of"
)]

mod common;

use common::eventually;
use nix::sys::signal::{SigHandler, SigSet, Signal, kill, signal};
use nix::unistd::Pid;
use untorn_process::{CommandSpec, Interrupt, InterruptSignal, run_command};

/// The mask in a line such as `SigIgn: 0000000000000000`.
fn mask(status: &str, name: &str) -> u64 {
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    let digits = line.split_whitespace().nth(1).unwrap();
    u64::from_str_radix(digits, 16).unwrap()
}

#[test]
fn signals_are_noted_and_children_start_without_them() {
    // What a child must not inherit.
    #[expect(unsafe_code, reason = "a disposition can only be set this way")]
    // SAFETY: ignoring installs no code.
    unsafe { signal(Signal::SIGUSR1, SigHandler::SigIgn) }.unwrap();
    SigSet::from(Signal::SIGUSR2).thread_block().unwrap();

    let interrupt = Interrupt::install().unwrap();
    let same = Interrupt::install().unwrap();

    let spec = CommandSpec::new("cat", ["/proc/self/status"]);
    let status = run_command(&spec, &interrupt).unwrap().stdout.to_string();
    assert_eq!(mask(&status, "SigBlk:"), 0, "blocked");
    assert_eq!(mask(&status, "SigIgn:"), 0, "ignored");
    assert_eq!(mask(&status, "SigCgt:"), 0, "caught");

    kill(Pid::this(), Signal::SIGTERM).unwrap();
    eventually("the signal", || interrupt.check().is_err());
    assert_eq!(same.signal(), Some(InterruptSignal::Terminate));
    kill(Pid::this(), Signal::SIGINT).unwrap();
    eventually("the second signal", || same.repeats() == 1);
    assert_eq!(interrupt.signal(), Some(InterruptSignal::Terminate));
    assert!(run_command(&spec, &interrupt).is_err());
}
