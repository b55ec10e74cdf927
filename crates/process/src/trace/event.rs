//! What a traced command tells.

use std::fmt;
use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use untorn_spec::Syscall;

use crate::command::said;
use crate::descendants::Containment;
use crate::interrupt::Interrupted;
use crate::start::StartError;
use crate::tail::OutputTail;

/// What happened next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TraceEvent {
    /// A mutating call below the root has returned. The thread that made it is held until
    /// [`super::TracedCommand::go`], and with it every thread that comes to a call of interest.
    ///
    /// Calls are numbered as they begin, so that in programs of several threads a greater index
    /// can return before a smaller one.
    Returned(Syscall),
    /// Something is not seen, or not done. Nothing is held.
    Warning(TraceWarning),
    /// The command has ended, and all that it started has been killed.
    Exited(TracedExit),
}

/// How a traced command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedExit {
    /// Exit status or signal of the command itself.
    pub status: ExitStatus,
    /// End of what it printed on stdout.
    pub stdout: OutputTail,
    /// End of what it printed on stderr.
    pub stderr: OutputTail,
    /// How the clean-up after it was done. Without a pid namespace it reaches as far as the
    /// tracing: that is, to every descendant.
    pub containment: Containment,
}

/// What the trace does not show, or a fault that was not made. Each is told once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum TraceWarning {
    /// A file is mapped shared and writable; what is stored into the mapping is not seen.
    SharedMapping(String),
    /// `io_uring` is used; what goes through it is not seen.
    IoUring,
    /// Linux AIO (`io_submit`) is used; what goes through it is not seen.
    Aio,
    /// A 32-bit program runs; its calls are not seen.
    ForeignProgram,
    /// This call cannot be dropped and was made; its name, such as `openat#1`.
    NotDropped(String),
}

impl fmt::Display for TraceWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SharedMapping(path) => {
                write!(f, "{path} is written through a shared mapping: not seen")
            }
            Self::IoUring => f.write_str("the program uses io_uring: not seen"),
            Self::Aio => f.write_str("the program uses Linux AIO: not seen"),
            Self::ForeignProgram => f.write_str("a 32-bit program runs: its calls are not seen"),
            Self::NotDropped(name) => write!(f, "{name} cannot be dropped; it was made"),
        }
    }
}

/// Why a traced command did not go on. In every case all of it has been killed.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// No command can be traced on this processor yet.
    #[error("programs cannot be traced on this processor yet, only on x86-64")]
    Unsupported,
    /// It was not started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// It ran for too long in all, holds not counted.
    #[error(
        "`{program}` was killed after running for {after:?}, the limit{}",
        said(stderr)
    )]
    TimedOut {
        /// The program.
        program: String,
        /// The limit.
        after: Duration,
        /// End of what it printed on stderr.
        stderr: OutputTail,
    },
    /// Somebody asked to stop.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// It does not go: it is stuck in the kernel.
    #[error("`{program}` was killed and does not end: it is stuck in the kernel")]
    Unkillable {
        /// The program.
        program: String,
    },
    /// The kernel refused what a tracer needs.
    #[error("tracing `{program}` failed: {source}; another tracer or a container may forbid it")]
    Trace {
        /// The program.
        program: String,
        /// What the kernel says.
        source: io::Error,
    },
    /// It has ended, or was killed: nothing is to come.
    #[error("`{program}` has ended already")]
    Ended {
        /// The program.
        program: String,
    },
}
