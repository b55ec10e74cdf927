//! The syscall boundary: a file system trait, the real one, and the wrapper that traces it.
//!
//! Code under test is generic over [`Fs`] and never calls the system itself. That gives the
//! harness one place where every call can be seen, disturbed or answered by a model:
//!
//! * [`Fs`] names the calls after the syscalls they are, relative to a directory descriptor.
//! * [`OsFs`] makes them.
//! * [`TraceFs`] tells a [`Hook`] about every mutating call after it has returned.
//! * [`Op`] and [`OpKind`] are the words for those calls, in traces, rules and reports alike.
//!
//! This crate has no threads, no clock and no randomness of its own: what a wrapper does depends
//! only on the calls that pass through it. The one unsafe block is in `sys`.

mod fs;
mod op;
mod os;
mod request;
mod stat;
mod sys;
mod trace;

pub use fs::{DirEntry, Fs, RemoveKind, RenameMode};
pub use op::{Completed, Op, OpKind, UnknownOpKind};
pub use os::OsFs;
pub use rustix::fs::{FlockOperation, OFlags};
pub use stat::{FileKind, Identity, Stat};
pub use trace::{Hook, TraceFs, TracedFd};
