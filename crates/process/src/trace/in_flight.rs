//! A call between its begin and its end, with the faults that were decided for it.

use std::io;

use nix::libc;
use nix::unistd::Pid;
use untorn_spec::Syscall;

use super::arch::{PWRITE64, Registers, WRITE};
use super::call::Call;
use super::describe::Success;
use super::fault::{After, Before, Decision};
use super::memory;

/// What tells a call that the kernel begins again from another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallId {
    pub(crate) instruction: u64,
    pub(crate) number: u64,
    pub(crate) arguments: [u64; 6],
}

/// A call that counts.
#[derive(Debug)]
pub(crate) struct InFlight {
    pub(crate) id: CallId,
    pub(crate) syscall: Syscall,
    call: Call,
    decision: Decision,
    success: Success,
    /// The registers as the program set them, when they were changed.
    original: Option<Registers>,
    /// The result of a call that is not made.
    skipped: Option<i64>,
}

/// How a call began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begun {
    AsDecided,
    /// It should have been dropped and cannot be.
    NotDropped,
}

/// How a call ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// With a result, which the program will see.
    Returned(Syscall),
    /// By a signal; the kernel may begin it again, unseen by the program.
    Interrupted(Box<InFlight>),
}

impl InFlight {
    pub(crate) fn new(
        call: Call,
        id: CallId,
        syscall: Syscall,
        decision: Decision,
        success: Success,
    ) -> Self {
        Self {
            id,
            syscall,
            call,
            decision,
            success,
            original: None,
            skipped: None,
        }
    }

    /// Changes the call that the thread is about to make as was decided.
    pub(crate) fn begin(&mut self, thread: Pid) -> io::Result<Begun> {
        match self.decision.before {
            Before::Run => {}
            Before::Drop => match self.success {
                Success::Zero => self.skip(thread, 0)?,
                Success::Bytes(bytes) => self.skip(thread, bytes.cast_signed())?,
                Success::Unknowable => return Ok(Begun::NotDropped),
            },
            Before::Errno(errno) => self.skip(thread, -i64::from(errno))?,
            Before::ShortWrite(bytes) => self.shorten(thread, bytes)?,
        }
        Ok(Begun::AsDecided)
    }

    fn skip(&mut self, thread: Pid, result: i64) -> io::Result<()> {
        self.skipped = Some(result);
        self.change(thread, |registers| registers.with_number(-1))
    }

    fn change(&mut self, thread: Pid, by: impl FnOnce(Registers) -> Registers) -> io::Result<()> {
        let original = Registers::read(thread)?;
        self.original = Some(original);
        by(original).write(thread)
    }

    fn shorten(&mut self, thread: Pid, bytes: u64) -> io::Result<()> {
        let arguments = self.id.arguments;
        match self.call {
            Call::Write | Call::Pwrite64 => self.lessen(thread, 2, bytes),
            Call::Sendfile => self.lessen(thread, 3, bytes),
            Call::CopyFileRange | Call::Splice => self.lessen(thread, 4, bytes),
            Call::Writev | Call::Pwritev | Call::Pwritev2 => {
                let [_, vector, count, at, ..] = arguments;
                let buffers = memory::buffers(thread, vector, count).unwrap_or_default();
                let Some([address, length]) = buffers.into_iter().find(|[_, length]| *length > 0)
                else {
                    return Ok(());
                };
                let here =
                    self.call == Call::Writev || (self.call == Call::Pwritev2 && at == u64::MAX);
                let number = if here { WRITE } else { PWRITE64 };
                self.change(thread, |registers| {
                    registers
                        .with_number(number)
                        .with_argument(1, address)
                        .with_argument(2, length.min(bytes))
                })
            }
            _ => Ok(()),
        }
    }

    fn lessen(&mut self, thread: Pid, position: usize, bytes: u64) -> io::Result<()> {
        let asked = self.id.arguments.get(position).copied().unwrap_or(0);
        self.change(thread, |registers| {
            registers.with_argument(position, asked.min(bytes))
        })
    }

    /// Gives the program its registers back, and the result that was decided.
    pub(crate) fn end(mut self, thread: Pid, result: i64) -> io::Result<Outcome> {
        if self.skipped.is_none() && is_restart(result) {
            if let Some(original) = self.original.take() {
                original.with_result(result).write(thread)?;
            }
            return Ok(Outcome::Interrupted(Box::new(self)));
        }
        let real = self.skipped.unwrap_or(result);
        let told = match self.decision.after {
            After::Keep => real,
            After::Errno(errno) => -i64::from(errno),
        };
        if let Some(original) = self.original {
            original.with_result(told).write(thread)?;
        } else if told != result {
            Registers::read(thread)?.with_result(told).write(thread)?;
        }
        let errno = i32::try_from(-told).ok();
        self.syscall.errno = errno.filter(|errno| (1..4096).contains(errno));
        Ok(Outcome::Returned(self.syscall))
    }

    /// The signal's handler did something else: the program saw the call fail.
    pub(crate) fn broken_off(mut self) -> Syscall {
        self.syscall.errno = Some(libc::EINTR);
        self.syscall
    }
}

/// Results inside the kernel with which a call is begun again after a signal, or turned into EINTR:
/// ERESTARTSYS, ERESTARTNOINTR, ERESTARTNOHAND and `ERESTART_RESTARTBLOCK`.
fn is_restart(result: i64) -> bool {
    matches!(result, -512 | -513 | -514 | -516)
}
