//! What can be done to a call.

use untorn_spec::Syscall;

/// What happens instead of a call, or with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Before {
    /// It is made.
    #[default]
    Run,
    /// It is not made and reports success; a write reports all its bytes. Calls whose success
    /// gives something that nobody has made (an open, a copy inside the kernel) cannot be dropped:
    /// they are made, and [`super::TraceWarning::NotDropped`] says so.
    Drop,
    /// It is not made and reports this error.
    Errno(i32),
    /// It writes no more than this many bytes. A write of several buffers writes from the first
    /// that is not empty. Calls that write nothing are made as they are.
    ShortWrite(u64),
}

/// What the program learns after a call was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum After {
    /// Its result.
    #[default]
    Keep,
    /// This error, although what the call did stays done; a descriptor that it opened stays open
    /// and unknown.
    Errno(i32),
}

/// The faults of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Decision {
    /// Before it is made.
    pub before: Before,
    /// After it was made.
    pub after: After,
}

/// Asked before each mutating call below the root, on the tracer's thread. The call's `errno` is
/// not known yet and `None`.
pub(crate) type Decide = Box<dyn FnMut(&Syscall) -> Decision + Send>;
