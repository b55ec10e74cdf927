//! Answers deferred reads when the kernel truly waits for them (crash model, section 3).
//!
//! The kernel truly waits when the thread that mounts and checks is blocked, and every request that
//! the block layer has not finished is one that we hold back. Both can be read: the state of the
//! thread in `/proc`, the number of unfinished requests in `/sys/block/loopN/inflight`. What they
//! do not show is a kernel worker that is about to send another request, so both are read twice.
//!
//! Sound whatever the timing: answering too early only makes a choice that was not needed,
//! answering too late only costs time.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::disk::{Disk, Released};

/// Least pause between the two looks, in which a kernel worker can finish what an answer made it
/// begin; on a slow or busy machine it is twice what the kernel takes to go on.
const GRACE_LEAST: Duration = Duration::from_micros(40);
/// Pause before the next look while something runs.
const RUNNING: Duration = Duration::from_micros(20);

/// The thread that mounts and checks, and the block device, as seen from outside.
#[derive(Debug)]
pub(crate) struct Recovering {
    thread: Mutex<Option<Thread>>,
    inflight: File,
}

/// Files of one thread in `/proc`.
#[derive(Debug)]
struct Thread {
    stat: File,
    status: File,
}

impl Recovering {
    /// Looks at the device `name`, such as `loop3`.
    pub(crate) fn new(name: &OsStr) -> io::Result<Self> {
        let inflight = File::open(Path::new("/sys/block").join(name).join("inflight"))?;
        Ok(Self {
            thread: Mutex::new(None),
            inflight,
        })
    }

    /// Looks at the main thread of process `pid` from now on.
    pub(crate) fn watch(&self, pid: u32) -> io::Result<()> {
        let open = |name| File::open(format!("/proc/{pid}/task/{pid}/{name}"));
        let thread = Thread {
            stat: open("stat")?,
            status: open("status")?,
        };
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(())
    }

    /// True when the thread is in uninterruptible sleep (state D in `proc_pid_stat(5)`): it waits
    /// for the disk.
    fn is_blocked(&self) -> bool {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Thread { stat, .. }) = thread.as_ref() else {
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

    /// How often the thread has gone to sleep: the same number twice says that it has not run in
    /// between.
    fn sleeps(&self) -> Option<u64> {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = [0; 4096];
        let length = thread.as_ref()?.status.read_at(&mut text, 0).ok()?;
        let text = std::str::from_utf8(&text[..length]).ok()?;
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        line.trim().parse().ok()
    }

    /// Requests that the block layer has sent to the disk and not finished (reads and writes, see
    /// `Documentation/block/stat.rst` of the kernel).
    fn unfinished(&self) -> usize {
        let mut text = [0; 64];
        let length = self.inflight.read_at(&mut text, 0).unwrap_or(0);
        let text = std::str::from_utf8(&text[..length]).unwrap_or("");
        text.split_whitespace()
            .filter_map(|number| number.parse::<usize>().ok())
            .sum()
    }

    fn is_waiting_for(&self, deferred: usize) -> bool {
        self.unfinished() <= deferred && self.is_blocked()
    }
}

/// Runs until the disk is stopped.
pub(crate) fn run(disk: &Arc<Disk>, recovering: &Recovering) {
    // Sleeps are rounded up by 50 microseconds otherwise, longer than the sleep itself.
    if let Err(error) = nix::sys::prctl::set_timerslack(1) {
        debug_assert!(false, "PR_SET_TIMERSLACK: {error}");
    }
    let mut last: Option<(Released, Option<u64>)> = None;
    while let Some(deferred) = disk.wait_for_deferred() {
        let activity = disk.activity();
        if !recovering.is_waiting_for(deferred) {
            std::thread::sleep(RUNNING);
            continue;
        }
        std::thread::sleep(GRACE_LEAST.max(2 * disk.pace()));
        if disk.activity() != activity || !recovering.is_waiting_for(deferred) {
            continue;
        }
        let sleeps = recovering.sleeps();
        if let Some((released, before)) = last.take()
            && sleeps.is_some()
            && sleeps == before
        {
            disk.note_useless(&released);
        }
        last = disk
            .release_one(activity)
            .map(|released| (released, sleeps));
    }
}
