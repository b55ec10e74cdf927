//! What a [`FaultFs`](crate::FaultFs) is told to do: [`FaultPlan`].

use std::fmt;
use std::rc::Rc;

use crate::op::{Completed, Op};

/// What happens to a mutating call that is about to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Before {
    /// It is made.
    #[default]
    Proceed,
    /// It is not made and reports this error number.
    Fail(i32),
    /// A write that takes at most so many bytes; any other call is made as it is.
    Short {
        /// How many.
        bytes: usize,
        /// The error number that the next write reports, whichever file it is on. That is how
        /// Linux reports a disk that fills up in the middle of a write (write(2)).
        then: Option<i32>,
    },
    /// It is not made and reports success. A write says that it took everything. A call that
    /// returns a descriptor has none to return, and fails with `ENOSYS`.
    Drop,
    /// The process dies here: the call is not made, and neither is any later one.
    Kill,
}

/// What happens to a mutating call that has been made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum After {
    /// Its caller learns the result.
    #[default]
    Proceed,
    /// Its caller sees this error number, although what it did stays done.
    Fail(i32),
    /// The process dies here: no later call is made.
    Kill,
}

/// A call that only looks.
///
/// The closed list of these calls; every other one is an [`OpKind`](crate::OpKind).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LookKind {
    /// `openat` that neither creates nor truncates.
    Openat,
    /// `read`.
    Read,
    /// `statx` of a descriptor.
    Fstat,
    /// `statx` of a name.
    Fstatat,
    /// `readlinkat`.
    Readlinkat,
    /// `getdents64`.
    ReadDir,
    /// `flock`.
    Flock,
}

impl fmt::Display for LookKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Openat => "openat",
            Self::Read => "read",
            Self::Fstat | Self::Fstatat => "statx",
            Self::Readlinkat => "readlinkat",
            Self::ReadDir => "getdents64",
            Self::Flock => "flock",
        })
    }
}

/// One looking call at its place among all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// The place among all looking calls, from 0.
    pub index: u32,
    /// Which call it is.
    pub kind: LookKind,
    /// The path it looks at, relative to the root.
    pub path: String,
}

impl fmt::Display for Look {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.path)
    }
}

/// What a [`FaultFs`](crate::FaultFs) asks before and after every call.
///
/// Each instance has its own plan, and nothing is global, so tests with faults run in parallel.
/// A plan that has something of its own to do at a boundary (let a neighbour commit, pause, take a
/// picture of the file system) does it in these methods.
pub trait FaultPlan {
    /// Called before a mutating call is made.
    fn before(&self, call: &Op) -> Before {
        let _ = call;
        Before::Proceed
    }

    /// Called after a mutating call has been made, failed, or was dropped, and before its caller
    /// learns of it. Not called for a call that [`before`](Self::before) killed.
    fn after(&self, call: &Completed) -> After {
        let _ = call;
        After::Proceed
    }

    /// Called before a call that only looks: the error number that it reports instead of being
    /// made, if any.
    fn look(&self, call: &Look) -> Option<i32> {
        let _ = call;
        None
    }

    /// Whether the plan wants to be asked at all. One that does not costs nearly nothing.
    fn is_active(&self) -> bool {
        true
    }
}

/// Nothing goes wrong.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFault;

impl FaultPlan for NoFault {
    fn is_active(&self) -> bool {
        false
    }
}

/// A plan that is asked before each mutating call only.
#[derive(Clone)]
pub struct PlanBefore<T>(pub T);

impl<T> fmt::Debug for PlanBefore<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PlanBefore").finish_non_exhaustive()
    }
}

impl<T: Fn(&Op) -> Before> FaultPlan for PlanBefore<T> {
    fn before(&self, call: &Op) -> Before {
        self.0(call)
    }
}

impl<P: FaultPlan + ?Sized> FaultPlan for &P {
    fn before(&self, call: &Op) -> Before {
        (**self).before(call)
    }

    fn after(&self, call: &Completed) -> After {
        (**self).after(call)
    }

    fn look(&self, call: &Look) -> Option<i32> {
        (**self).look(call)
    }

    fn is_active(&self) -> bool {
        (**self).is_active()
    }
}

impl<P: FaultPlan + ?Sized> FaultPlan for Rc<P> {
    fn before(&self, call: &Op) -> Before {
        (**self).before(call)
    }

    fn after(&self, call: &Completed) -> After {
        (**self).after(call)
    }

    fn look(&self, call: &Look) -> Option<i32> {
        (**self).look(call)
    }

    fn is_active(&self) -> bool {
        (**self).is_active()
    }
}
