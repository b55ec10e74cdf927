//! How a child comes under its tracer between fork and exec.
//!
//! The child says who it is and waits until it is traced; only then may it put the filter on
//! itself, because a call that the filter would report to nobody fails.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::libc;
use nix::unistd::Pid;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::{filter, sys};
use crate::control;

/// The child's side. As [`crate::child_setup::ChildSetup`], it neither allocates nor locks after
/// the fork.
#[derive(Debug)]
pub(crate) struct Gate {
    socket: OwnedFd,
    filter: Vec<libc::sock_filter>,
}

/// The tracer's side.
#[derive(Debug)]
pub(crate) struct Gatekeeper {
    socket: OwnedFd,
}

/// Bytes that a process number may have.
const NUMBER_BYTES_MAX: usize = 16;

/// Both sides.
pub(crate) fn gate() -> io::Result<(Gate, Gatekeeper)> {
    let (childs, tracers) = control::pair()?;
    let gate = Gate {
        socket: childs,
        filter: filter::filter(),
    };
    Ok((gate, Gatekeeper { socket: tracers }))
}

impl Gate {
    /// Tells the tracer which process this is, and waits until it is traced.
    ///
    /// getpid(2) gives a number that means nothing outside of a pid namespace. Where /proc/self
    /// points to is the number under which the tracer finds this process in /proc, and it looks
    /// there for everything else as well.
    pub(crate) fn pass(&self) -> rustix::io::Result<()> {
        let mut number = [0; NUMBER_BYTES_MAX];
        let own = c"/proc/self";
        let written = rustix::fs::readlinkat_raw(rustix::fs::CWD, own, &mut number)?;
        send(&self.socket, &number[..written], SendFlags::NOSIGNAL)?;
        let mut go = [0];
        loop {
            match recv(&self.socket, &mut go, RecvFlags::empty()) {
                Ok((_, 1)) => return Ok(()),
                // The tracer is gone.
                Ok(_) => return Err(Errno::SRCH),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Puts the filter on.
    pub(crate) fn install_filter(&self) -> io::Result<()> {
        sys::install_filter(&self.filter)
    }
}

impl Gatekeeper {
    /// Readable when the child waits, or is gone.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Waits for the child. None when it ended before it came here.
    pub(crate) fn arrival(&self) -> io::Result<Option<Pid>> {
        let mut number = [0; NUMBER_BYTES_MAX];
        let (_, length) =
            rustix::io::retry_on_intr(|| recv(self.descriptor(), &mut number, RecvFlags::empty()))?;
        if length == 0 {
            return Ok(None);
        }
        let digits = number.get(..length).unwrap_or_default();
        let parsed = std::str::from_utf8(digits)
            .ok()
            .and_then(|text| text.parse().ok());
        let number: i32 = parsed.ok_or(io::ErrorKind::InvalidData)?;
        Ok(Some(Pid::from_raw(number)))
    }

    /// Lets the child pass.
    pub(crate) fn open(&self) -> io::Result<()> {
        send(&self.socket, &[1], SendFlags::NOSIGNAL)?;
        Ok(())
    }
}
