//! The subject's side of the control socket.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use untorn_spec::{FromSubject, Syscall, ToSubject, WriterOrder};

use crate::control::{PacketError, receive_message, send_message};
use crate::sys;

/// Environment variable that holds the number of the inherited descriptor.
pub const CONTROL_FD_VARIABLE: &str = "UNTORN_CONTROL_FD";

/// Why a subject cannot talk to its harness.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// This process was not started as a held subject.
    #[error("this is no held subject: {CONTROL_FD_VARIABLE} is not set to a descriptor's number")]
    NoHarness,
    /// The socket was taken by an earlier call.
    #[error("the control socket is already in use in this process")]
    Taken,
    /// What the variable names is no control socket.
    #[error("descriptor {number} is no control socket: {source}")]
    NoSocket {
        /// The number in the variable.
        number: i32,
        /// What the kernel says.
        source: std::io::Error,
    },
    /// A message could not be exchanged.
    #[error(transparent)]
    Packet(#[from] PacketError),
}

/// The subject's side of the control socket.
///
/// Each report waits for the harness to say [`ToSubject::Go`], so that nothing happens in between
/// that the harness did not allow.
#[derive(Debug)]
pub struct ControlClient {
    socket: OwnedFd,
}

impl ControlClient {
    /// Takes over the inherited socket and receives the order. It can be done once in a process.
    ///
    /// # Errors
    /// When the process is no held subject, or the harness is gone.
    pub fn connect() -> Result<(Self, WriterOrder), ControlError> {
        static TAKEN: AtomicBool = AtomicBool::new(false);
        let number = std::env::var(CONTROL_FD_VARIABLE)
            .ok()
            .and_then(|number| number.parse().ok())
            .ok_or(ControlError::NoHarness)?;
        if TAKEN.swap(true, Ordering::SeqCst) {
            return Err(ControlError::Taken);
        }
        let socket = sys::take_inherited_socket(number)
            .map_err(|source| ControlError::NoSocket { number, source })?;
        let client = Self { socket };
        let order = receive_message(client.socket.as_fd())?;
        Ok((client, order))
    }

    /// Reports that the first call is about to be made, and waits.
    ///
    /// # Errors
    /// When the harness is gone.
    pub fn started(&self) -> Result<(), ControlError> {
        self.report(&FromSubject::Started)
    }

    /// Reports a call that has returned, and waits.
    ///
    /// # Errors
    /// When the harness is gone.
    pub fn returned(&self, syscall: &Syscall) -> Result<(), ControlError> {
        self.report(&FromSubject::Returned(syscall.clone()))
    }

    /// Reports that the new generation is published and durable, and waits.
    ///
    /// # Errors
    /// When the harness is gone.
    pub fn acknowledged(&self) -> Result<(), ControlError> {
        self.report(&FromSubject::Acknowledged)
    }

    /// Reports the end, with an error if there was one. Nobody answers.
    ///
    /// # Errors
    /// When the harness is gone.
    pub fn finished(self, error: Option<String>) -> Result<(), ControlError> {
        let message = FromSubject::Finished { error };
        Ok(send_message(self.socket.as_fd(), &message)?)
    }

    fn report(&self, message: &FromSubject) -> Result<(), ControlError> {
        send_message(self.socket.as_fd(), message)?;
        match receive_message(self.socket.as_fd())? {
            ToSubject::Go => Ok(()),
        }
    }
}
