//! A child with its process group: what is killed and reaped together.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Child, ChildStderr, ChildStdout, ExitStatus};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use crate::poll;

/// How long a killed process may take to go. It can be longer than one expects: a process in the
/// middle of a disk request dies when the disk has answered.
pub(crate) const REAP_SECONDS_MAX: Duration = Duration::from_secs(10);

/// A child that leads its own process group. Dropped, it is killed with the group, and reaped.
#[derive(Debug)]
pub(crate) struct ChildGroup {
    child: Child,
    pidfd: OwnedFd,
    status: Option<ExitStatus>,
}

/// A killed process does not go: it is stuck in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unkillable;

impl ChildGroup {
    /// Takes over a child that was started as the leader of its own group.
    pub(crate) fn new(mut child: Child) -> std::io::Result<Self> {
        match pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) {
            Ok(pidfd) => Ok(Self {
                child,
                pidfd,
                status: None,
            }),
            Err(error) => {
                child.kill()?;
                child.wait()?;
                Err(error.into())
            }
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    pub(crate) fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// A descriptor that is readable once the child has ended.
    pub(crate) fn ended(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Waits for the end of the child, which must not take longer than until the deadline.
    pub(crate) fn has_ended_by(&self, deadline: Instant) -> bool {
        self.status.is_some() || matches!(poll::ready([Some(self.ended())], deadline), Ok([true]))
    }

    /// Kills every process of the group.
    ///
    /// The child is not reaped before this has been called, so that the number of the group cannot
    /// have become somebody else's.
    pub(crate) fn kill(&self) {
        if self.status.is_none() {
            // It fails when nothing is left to be killed.
            kill_process_group(Pid::from_child(&self.child), Signal::KILL).ok();
        }
    }

    /// Kills what is left of the group and reaps the child.
    pub(crate) fn reap(&mut self) -> Result<ExitStatus, Unkillable> {
        self.kill();
        if let Some(status) = self.status {
            return Ok(status);
        }
        if !self.has_ended_by(Instant::now() + REAP_SECONDS_MAX) {
            return Err(Unkillable);
        }
        match self.child.wait() {
            Ok(status) => {
                self.status = Some(status);
                Ok(status)
            }
            // Somebody else has reaped it, which nobody should.
            Err(_) => Err(Unkillable),
        }
    }
}

impl Drop for ChildGroup {
    fn drop(&mut self) {
        // A process that is stuck in the kernel is left to it.
        self.reap().ok();
    }
}
