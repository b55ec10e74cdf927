//! What happens in a child between fork and exec.

use std::ffi::CString;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;

use nix::sched::{CloneFlags, setns};
use nix::sys::signal::SigSet;
use rustix::fs::Mode;
use rustix::io::FdFlags;
use rustix::process::{Pid, Signal};

use crate::trace::Gate;
use crate::{Limits, sys};

/// A step of the set-up of a child, for the error that names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetupStep {
    /// Default, unblocked signals.
    Signals,
    /// Dying with the harness.
    ParentDeath,
    /// Entering the mount namespace.
    MountNamespace,
    /// Changing to the working directory.
    WorkingDirectory,
    /// Setting the resource limits.
    Limits,
    /// Keeping the control socket open over exec.
    ControlSocket,
    /// Coming under the tracer.
    Tracer,
    /// Putting on the filter that stops it at calls of interest.
    CallFilter,
}

impl SetupStep {
    const ALL: [Self; 8] = [
        Self::Signals,
        Self::ParentDeath,
        Self::MountNamespace,
        Self::WorkingDirectory,
        Self::Limits,
        Self::ControlSocket,
        Self::Tracer,
        Self::CallFilter,
    ];

    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|step| *step as u8 == byte)
    }
}

impl fmt::Display for SetupStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Signals => "reset its signals",
            Self::ParentDeath => "tie its life to the harness",
            Self::MountNamespace => "enter the mount namespace",
            Self::WorkingDirectory => "change to the working directory",
            Self::Limits => "set its resource limits",
            Self::ControlSocket => "keep the control socket",
            Self::Tracer => "come under the tracer",
            Self::CallFilter => "put on the call filter",
        })
    }
}

/// What happens in a child between fork and exec, on top of what `Command` does.
///
/// [`ChildSetup::apply`] runs in the fork of a process with several threads: it must neither
/// allocate nor lock. It only makes system calls on what was made ready here.
#[derive(Debug)]
pub(crate) struct ChildSetup {
    /// Namespace to enter.
    pub(crate) mount_namespace: Option<OwnedFd>,
    /// Directory to change to. `Command` would do it before the namespace is entered, which puts
    /// the process back to the top.
    pub(crate) working_directory: Option<CString>,
    /// Process that the child must not outlive; none when a pid namespace sees to that, where a
    /// parent outside the namespace has no number.
    pub(crate) parent: Option<Pid>,
    /// Descriptor to keep open over exec, under the number it has.
    pub(crate) keep: Option<OwnedFd>,
    /// The way under a tracer.
    pub(crate) gate: Option<Gate>,
    /// Resource limits.
    pub(crate) limits: Limits,
    /// Pipe on which the failing step is named: the error that `Command` hands on is an errno
    /// alone, and cannot be told from an error of exec.
    pub(crate) failed_step: OwnedFd,
}

impl ChildSetup {
    /// Runs every step; on failure its number is in the pipe.
    pub(crate) fn apply(&self) -> io::Result<()> {
        self.steps().map_err(|(step, error)| {
            // If even this write fails, the errno alone has to do.
            rustix::io::write(&self.failed_step, &[step as u8]).ok();
            error
        })
    }

    fn steps(&self) -> Result<(), (SetupStep, io::Error)> {
        fn at<E: Into<io::Error>>(step: SetupStep) -> impl Fn(E) -> (SetupStep, io::Error) {
            move |error| (step, error.into())
        }
        sys::reset_signal_dispositions();
        SigSet::empty()
            .thread_set_mask()
            .map_err(at(SetupStep::Signals))?;
        // Before the mount namespace is entered, which may have another /proc.
        if let Some(gate) = &self.gate {
            gate.pass().map_err(at(SetupStep::Tracer))?;
        }
        if let Some(parent) = self.parent {
            die_with(parent).map_err(at(SetupStep::ParentDeath))?;
        }
        rustix::process::umask(Mode::from_raw_mode(0o022));
        if let Some(namespace) = &self.mount_namespace {
            setns(namespace, CloneFlags::CLONE_NEWNS).map_err(at(SetupStep::MountNamespace))?;
        }
        if let Some(directory) = &self.working_directory {
            rustix::process::chdir(directory.as_c_str())
                .map_err(at(SetupStep::WorkingDirectory))?;
        }
        if let Some(descriptor) = &self.keep {
            rustix::io::fcntl_setfd(descriptor, FdFlags::empty())
                .map_err(at(SetupStep::ControlSocket))?;
        }
        self.limits.apply_to_self().map_err(at(SetupStep::Limits))?;
        if let Some(gate) = &self.gate {
            gate.install_filter().map_err(at(SetupStep::CallFilter))?;
        }
        Ok(())
    }
}

/// Has the kernel kill this process when the thread that started it ends.
fn die_with(parent: Pid) -> rustix::io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // The parent may have died before the call: then no signal will come.
    if rustix::process::getppid() == Some(parent) {
        Ok(())
    } else {
        Err(rustix::io::Errno::SRCH)
    }
}
