//! Any program, unmodified: its mutating calls below one directory, held one by one.
//!
//! [`TracedCommand`] runs a command under ptrace with a seccomp filter, so that only the calls that
//! can matter stop it. What it tells of a program is what a built-in writer tells of itself: each
//! mutating call by name and path ([`untorn_spec::Syscall`]), held after its return until the
//! harness lets it go on. [`Decision`] is where faults act.
//!
//! # What is seen
//! Every process and thread that the command starts, by fork, vfork or clone, over every exec, in
//! the background too. Calls are told by what they do, not by which of several syscalls a C library
//! picked: rename(2), renameat(2) and renameat2(2) are all `renameat2`.
//!
//! # What is not
//! * Writes through a shared mapping, `io_uring` and Linux AIO make no call for each change; they are
//!   told as a [`TraceWarning`].
//! * 32-bit programs run, untraced, with a warning.
//! * A program that itself uses ptrace (a debugger) is refused by the kernel.
//! * Only the thread that made the call is held. Others run on until their next call of interest,
//!   which may end while the first is held when it had begun before.
//! * Without `CAP_SYS_ADMIN` the filter needs `no_new_privs`, so set-user-id programs run with the
//!   rights of the caller; sudo refuses to start.

mod arch;
mod call;
mod command;
mod describe;
mod details;
mod event;
mod fault;
mod filter;
mod gate;
mod in_flight;
mod launch;
mod memory;
mod path;
mod report;
mod sys;
mod tracer;

pub use command::TracedCommand;
pub use event::{TraceError, TraceEvent, TraceWarning, TracedExit};
pub use fault::{After, Before, Decision};
pub(crate) use gate::Gate;
