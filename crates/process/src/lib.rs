//! Start, hold, kill and reap subjects.
//!
//! * [`HeldSubject`] runs a built-in writer as a child that stops after every mutating syscall,
//!   and [`ControlClient`] is that child's side of the control socket.
//! * [`run_command`] runs any other program to its end.
//! * [`TracedCommand`] runs any other program and stops it after every mutating syscall.
//! * [`Interrupt`] carries Ctrl-C and SIGTERM to everything that waits.
//!
//! Whatever is started here is gone when its handle is: each child is killed together with its
//! process group, commands together with all their descendants, and the kernel kills both should
//! the harness itself be killed.

mod child_setup;
mod client;
mod command;
mod control;
mod descendants;
mod group;
mod held;
mod interrupt;
mod limits;
mod poll;
mod start;
mod sys;
mod tail;
mod trace;

pub use child_setup::SetupStep;
pub use client::{CONTROL_FD_VARIABLE, ControlClient, ControlError};
pub use command::{CommandError, CommandOutcome, CommandSpec, run_command};
pub use control::{PACKET_BYTES_MAX, PacketError};
pub use descendants::Containment;
pub use held::{HeldSubject, SubjectCommand, SubjectError, SubjectExit};
pub use interrupt::{Interrupt, InterruptSignal, Interrupted};
pub use limits::Limits;
pub use start::StartError;
pub use tail::OutputTail;
pub use trace::{
    After, Before, Decision, TraceError, TraceEvent, TraceWarning, TracedCommand, TracedExit,
};
