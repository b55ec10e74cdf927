//! Answers deferred reads when the kernel truly waits for them (crash model, section 3).
//!
//! Sound whatever the timing: answering too early only makes a choice that was not needed,
//! answering too late only costs time.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::disk::Disk;

/// How long the disk must have been quiet, and the recovering thread blocked, before a deferred
/// read is answered.
const QUIET: Duration = Duration::from_micros(60);
/// Pause before the recovering thread is looked at again while it runs.
const RUNNING: Duration = Duration::from_micros(20);

/// The thread that mounts and checks, as seen from outside.
#[derive(Debug, Default)]
pub(crate) struct Recovering {
    stat: Mutex<Option<File>>,
}

impl Recovering {
    /// Looks at the main thread of process `pid` from now on.
    pub(crate) fn watch(&self, pid: u32) -> io::Result<()> {
        let stat = File::open(format!("/proc/{pid}/task/{pid}/stat"))?;
        *self.stat.lock().unwrap_or_else(PoisonError::into_inner) = Some(stat);
        Ok(())
    }

    /// True when the thread is in uninterruptible sleep (state D in `proc_pid_stat(5)`): it waits
    /// for the disk.
    fn is_blocked(&self) -> bool {
        let stat = self.stat.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(stat) = stat.as_ref() else {
            return true;
        };
        let mut text = [0; 64];
        // The thread is gone: nothing more will come, so what waits may be answered.
        let Ok(length) = stat.read_at(&mut text, 0) else {
            return true;
        };
        // The state is the first field behind the program's name, which ends in the last `)`.
        let text = &text[..length];
        match text.iter().rposition(|byte| *byte == b')') {
            Some(end) => matches!(text.get(end + 2), Some(b'D' | b'Z' | b'X')),
            None => true,
        }
    }
}

/// Runs until the disk is stopped.
pub(crate) fn run(disk: &Arc<Disk>, recovering: &Recovering) {
    // Sleeps are rounded up by 50 microseconds otherwise, as long as the sleep itself.
    if let Err(error) = nix::sys::prctl::set_timerslack(1) {
        debug_assert!(false, "PR_SET_TIMERSLACK: {error}");
    }
    while disk.wait_for_deferred() {
        let activity = disk.activity();
        if !recovering.is_blocked() {
            std::thread::sleep(RUNNING);
            continue;
        }
        std::thread::sleep(QUIET);
        if disk.activity() == activity && recovering.is_blocked() {
            disk.release_one(activity);
        }
    }
}
