//! Processors for which there is no file yet: nothing is traced, and starting says so.

use std::io;

use nix::unistd::Pid;

use crate::trace::call::Call;

pub(crate) const SUPPORTED: bool = false;
pub(crate) const AUDIT_ARCH: u32 = 0;
pub(crate) const FOREIGN_NUMBERS_FROM: Option<u32> = None;
pub(crate) const CALLS: &[(i64, Call)] = &[];
pub(crate) const WRITE: i64 = 0;
pub(crate) const PWRITE64: i64 = 0;

/// Registers of a stopped thread; there are never any.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Registers {}

impl Registers {
    pub(crate) fn read(_thread: Pid) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn write(&self, _thread: Pid) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn with_number(self, _number: i64) -> Self {
        match self {}
    }

    pub(crate) fn with_argument(self, _position: usize, _value: u64) -> Self {
        match self {}
    }

    pub(crate) fn with_result(self, _result: i64) -> Self {
        match self {}
    }
}
