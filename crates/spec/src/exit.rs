//! Exit codes of the command.

use crate::Verdict;

/// How a run of the command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// All as expected.
    Success = 0,
    /// A violation where none was expected.
    Violation = 1,
    /// The command line or a scenario is wrong.
    Usage = 2,
    /// This machine lacks something.
    Unsupported = 3,
    /// A control was not caught.
    ControlNotCaught = 4,
    /// No verdict was reached.
    Inconclusive = 5,
    /// The harness itself failed.
    Internal = 70,
    /// Stopped by Ctrl-C.
    Interrupted = 130,
    /// Stopped by SIGTERM.
    Terminated = 143,
}

impl Exit {
    /// The number given to the caller.
    pub const fn code(self) -> u8 {
        self as u8
    }
}

impl From<Verdict> for Exit {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Holds => Self::Success,
            Verdict::Unsupported => Self::Unsupported,
            Verdict::Inconclusive => Self::Inconclusive,
            Verdict::Violated => Self::Violation,
            Verdict::HarnessBroken => Self::ControlNotCaught,
        }
    }
}
