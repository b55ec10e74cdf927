//! The syscall boundary: a file system trait, the real one, a model of a
//! crashing one, and the wrappers that trace and break it.
//!
//! Code under test is generic over [`Fs`] and never calls the system itself. That gives the
//! harness one place where every call can be seen, disturbed or answered by a model:
//!
//! * [`Fs`] names the calls after the syscalls they are, relative to a directory descriptor.
//! * [`OsFs`] makes them.
//! * [`TraceFs`] tells a [`Hook`] about every mutating call after it has returned.
//! * [`FaultFs`] breaks calls as a [`FaultPlan`] says; [`sweep`] tries every fault at every call.
//! * [`ModelFs`] is a file system in memory that can lose power.
//! * [`Op`] and [`OpKind`] are the words for those calls, in traces, rules and reports alike.
//!
//! This crate has no threads, no clock and no randomness of its own: what a wrapper does depends
//! only on the calls that pass through it. The one unsafe block is in `sys`.

mod fault;
mod fs;
mod model;
mod op;
mod os;
mod plan;
mod request;
mod stat;
mod sweep;
mod sys;
mod trace;

pub use fault::{FaultFd, FaultFs, Killed};
pub use fs::{DirEntry, Fs, RemoveKind, RenameMode};
pub use model::{ChoiceInfo, Chooser, CrashImage, ImageKey, ModelFd, ModelFs, Persistence};
pub use op::{Completed, Op, OpKind, UnknownOpKind};
pub use os::OsFs;
pub use plan::{After, Before, FaultPlan, Look, LookKind, NoFault, PlanBefore};
pub use rustix::fs::{FlockOperation, OFlags};
pub use stat::{FileKind, Identity, Stat};
pub use sweep::{Pair, SweepAction, SweepPlan, SweepReport, sweep};
pub use trace::{Hook, TraceFs, TracedFd};
