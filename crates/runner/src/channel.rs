//! JSON messages with their length in front, over a stream socket.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// No message is longer: a snapshot of a thousand files stays far below.
const BYTES_MAX: u32 = 1 << 30;

/// Sends one message.
pub(crate) fn send(socket: &UnixStream, message: &impl Serialize) -> io::Result<()> {
    let mut frame = vec![0; 4];
    serde_json::to_writer(&mut frame, message)?;
    let length = u32::try_from(frame.len() - 4).map_err(io::Error::other)?;
    frame[..4].copy_from_slice(&length.to_le_bytes());
    let mut socket = socket;
    socket.write_all(&frame)
}

/// Receives one message; `UnexpectedEof` when the other side is gone, `WouldBlock` when the
/// socket's time limit is over.
pub(crate) fn receive<T: DeserializeOwned>(socket: &UnixStream) -> io::Result<T> {
    let mut socket = socket;
    let mut length = [0; 4];
    socket.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length);
    if length > BYTES_MAX {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "message too long",
        ));
    }
    let mut frame = vec![0; length as usize];
    socket.read_exact(&mut frame)?;
    Ok(serde_json::from_slice(&frame)?)
}
