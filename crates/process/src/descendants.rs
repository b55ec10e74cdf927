//! Descendants of a command that left its process group.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{PidfdFlags, pidfd_open};

use crate::group::REAP_SECONDS_MAX;
use crate::{poll, sys};

/// How far the clean-up after a command reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Containment {
    /// Every descendant, by a pid namespace of the command's own.
    PidNamespace,
    /// The process group only: a descendant that started a session of its own survives. This is
    /// so without the right to make pid namespaces, or on a kernel without them.
    ProcessGroup,
}

/// A pid namespace for what the calling thread starts from now on. When its init dies, the kernel
/// kills everything in it, which nothing can escape.
///
/// The init is a process that idles, so that the command itself is an ordinary process: an init
/// ignores most signals. The command stays the child of the harness, as process 2 of the
/// namespace. /proc is left as it is, so a command finds itself under `/proc/self`, and not under
/// the number that `getpid` gives it; a mount namespace with a /proc of its own would keep the
/// file system under test mounted for a moment after the command has ended.
///
/// Namespaces belong to threads, and cannot be left again: the calling thread must be one that
/// ends after the command, and it can start no threads.
#[derive(Debug)]
pub(crate) struct Descendants {
    init: Pid,
    ended: OwnedFd,
    /// The init ends when this is closed, should the harness be killed.
    _lifeline: OwnedFd,
}

impl Descendants {
    /// None when this machine does not allow it.
    pub(crate) fn contain() -> io::Result<Option<Self>> {
        if unshare(CloneFlags::CLONE_NEWPID).is_err() {
            return Ok(None);
        }
        let (watched, lifeline) = pipe_with(PipeFlags::CLOEXEC)?;
        let init = sys::fork_idle(&watched)?;
        let opened = rustix::process::Pid::from_raw(init.as_raw())
            .ok_or(rustix::io::Errno::SRCH)
            .and_then(|pid| pidfd_open(pid, PidfdFlags::empty()));
        match opened {
            Ok(ended) => Ok(Some(Self {
                init,
                ended,
                _lifeline: lifeline,
            })),
            Err(error) => {
                kill(init, Signal::SIGKILL)?;
                waitpid(init, None)?;
                Err(error.into())
            }
        }
    }

    /// Kills everything in the namespace. Nothing in it that has a parent outside is reaped.
    pub(crate) fn kill(&self) {
        // The init is this process's child and not reaped yet, so the number is its own.
        kill(self.init, Signal::SIGKILL).ok();
    }
}

impl Drop for Descendants {
    /// Kills everything and waits for it to be gone. The command must have been reaped: the
    /// namespace's end waits for it.
    fn drop(&mut self) {
        self.kill();
        let deadline = Instant::now() + REAP_SECONDS_MAX;
        if let Ok([true]) = poll::ready([Some(self.ended.as_fd())], deadline) {
            waitpid(self.init, None).ok();
        }
    }
}
