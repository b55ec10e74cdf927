//! Packets on the control socket: one JSON text each.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Bytes that one packet may have. The kernel's default for a socket's buffer is a little more.
pub const PACKET_BYTES_MAX: usize = 128 * 1024;

/// Why a packet could not be sent or received.
#[derive(Debug, thiserror::Error)]
pub enum PacketError {
    /// The other end is closed.
    #[error("the other end of the control socket is closed")]
    Closed,
    /// The message does not fit.
    #[error("a control message has {bytes} bytes, the most is {PACKET_BYTES_MAX}")]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// The message is not what was expected here.
    #[error("a control message cannot be read: {0}")]
    Malformed(#[from] serde_json::Error),
    /// The socket fails.
    #[error("the control socket fails: {0}")]
    Socket(#[from] io::Error),
}

/// The two ends of a control socket; neither is inherited unless somebody sees to it.
pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?)
}

/// Sends one message.
pub(crate) fn send_message(
    socket: BorrowedFd<'_>,
    message: &impl Serialize,
) -> Result<(), PacketError> {
    let text = serde_json::to_vec(message)?;
    let bytes = text.len();
    if bytes > PACKET_BYTES_MAX {
        return Err(PacketError::TooLarge { bytes });
    }
    loop {
        match send(socket, &text, SendFlags::NOSIGNAL) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(Errno::PIPE | Errno::CONNRESET) => return Err(PacketError::Closed),
            Err(error) => return Err(PacketError::Socket(error.into())),
        }
    }
}

/// Waits for one message.
pub(crate) fn receive_message<M: DeserializeOwned>(
    socket: BorrowedFd<'_>,
) -> Result<M, PacketError> {
    let mut buffer = vec![0; PACKET_BYTES_MAX];
    let bytes = loop {
        // With TRUNC the size is that of the packet, also when it does not fit.
        match recv(socket, &mut buffer, RecvFlags::TRUNC) {
            Ok((_, bytes)) => break bytes,
            Err(Errno::INTR) => {}
            Err(Errno::CONNRESET) => return Err(PacketError::Closed),
            Err(error) => return Err(PacketError::Socket(error.into())),
        }
    };
    match buffer.get(..bytes) {
        // There are no empty messages, so this is the end.
        Some([]) => Err(PacketError::Closed),
        Some(text) => Ok(serde_json::from_slice(text)?),
        None => Err(PacketError::TooLarge { bytes }),
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use untorn_spec::{FromSubject, Syscall};

    use super::{PACKET_BYTES_MAX, PacketError, pair, receive_message, send_message};

    fn returned(text_bytes: usize) -> FromSubject {
        FromSubject::Returned(Syscall {
            index: 3,
            name: "fsync#2".to_owned(),
            text: "x".repeat(text_bytes),
            errno: Some(5),
        })
    }

    #[test]
    fn a_message_of_the_greatest_size_passes_and_a_larger_one_is_refused() {
        let (here, there) = pair().unwrap();
        let frame = serde_json::to_vec(&returned(0)).unwrap().len();
        let largest = returned(PACKET_BYTES_MAX - frame);
        send_message(here.as_fd(), &largest).unwrap();
        let received: FromSubject = receive_message(there.as_fd()).unwrap();
        assert_eq!(received, largest);

        let error = send_message(here.as_fd(), &returned(PACKET_BYTES_MAX)).unwrap_err();
        assert!(matches!(error, PacketError::TooLarge { .. }), "{error}");
    }

    #[test]
    fn the_end_is_told_from_a_message() {
        let (here, there) = pair().unwrap();
        drop(here);
        let end = receive_message::<FromSubject>(there.as_fd());
        assert!(matches!(end, Err(PacketError::Closed)), "{end:?}");
        let end = send_message(there.as_fd(), &FromSubject::Started);
        assert!(matches!(end, Err(PacketError::Closed)), "{end:?}");
    }
}
