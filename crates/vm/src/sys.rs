//! What has no safe interface. All unsafe code of this crate.
#![expect(
    unsafe_code,
    reason = "code between fork and exec has no safe interface"
)]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Signal, getppid, set_parent_process_death_signal};

/// Has the kernel kill the child when the thread that starts it ends, however it ends
/// (`PR_SET_PDEATHSIG`, prctl(2)), and keeps the terminal's Ctrl-C from it.
pub(crate) fn die_with_parent(command: &mut Command) {
    let parent = rustix::process::getpid();
    let set_up = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have died before the call: then no signal will come.
        if getppid() == Some(parent) {
            Ok(())
        } else {
            Err(io::Error::from(rustix::io::Errno::SRCH))
        }
    };
    // SAFETY: the closure makes two system calls, and neither allocates nor locks.
    unsafe { command.pre_exec(set_up) };
    command.process_group(0);
}
