//! What the harness and a guest's init say to each other, over a virtual serial port.
//!
//! A message is two lengths (32 bits, little endian), a head of JSON, and a body of bytes.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Name of the port.
pub const PORT: &str = "untorn";
/// Most bytes in one body.
pub const BODY_BYTES_MAX: usize = 256 * 1024;
const HEAD_BYTES_MAX: usize = 1 << 20;

/// What the harness says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToGuest {
    /// Run this program with these arguments.
    Run(Job),
    /// Power off.
    PowerOff,
}

/// A command to run in the guest.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Job {
    /// Arguments of this program.
    pub args: Vec<String>,
    /// Environment on top of the guest's own.
    pub env: BTreeMap<String, String>,
    /// Working directory; it is made.
    pub directory: PathBuf,
    /// Directory whose new and changed files come out; it is made.
    pub collect: Option<PathBuf>,
    /// Modules to load before, by name; what is built in or absent is passed over.
    pub modules: Vec<String>,
}

/// What a guest says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromGuest {
    /// Init is there.
    Hello {
        /// `uname -r`.
        release: String,
        /// Milliseconds from the kernel's start to this word.
        uptime_ms: u64,
    },
    /// Still there.
    Alive,
    /// The command printed the body.
    Output {
        /// On stderr, not stdout.
        stderr: bool,
    },
    /// The body belongs to a file below the directory that is collected.
    File {
        /// Path below it.
        path: String,
        /// Permissions.
        mode: u32,
        /// It comes behind what came before; otherwise the file is made anew.
        append: bool,
    },
    /// The command ended.
    Done(JobExit),
    /// Init cannot go on; the reason.
    Failed(String),
}

/// How a command in a guest ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum JobExit {
    /// With an exit code.
    Code(i32),
    /// By a signal.
    Signal(i32),
}

/// Writes a message.
///
/// # Errors
/// Those of writing.
pub fn send(to: &mut impl Write, head: &impl Serialize, body: &[u8]) -> io::Result<()> {
    let head = serde_json::to_vec(head)?;
    let mut message = Vec::with_capacity(8 + head.len() + body.len());
    for length in [head.len(), body.len()] {
        let length = u32::try_from(length).map_err(io::Error::other)?;
        message.extend(length.to_le_bytes());
    }
    message.extend(head);
    message.extend(body);
    to.write_all(&message)
}

/// Reads a message.
///
/// # Errors
/// Those of reading, `InvalidData` for what is no message.
pub fn receive<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<(T, Vec<u8>)> {
    let mut lengths = [0; 8];
    from.read_exact(&mut lengths)?;
    let (head, body) = parse_lengths(lengths)?;
    let mut message = vec![0; head + body];
    from.read_exact(&mut message)?;
    parse(message, head)
}

/// Takes the first message out of what was received so far; `None` while there is more to come.
///
/// # Errors
/// `InvalidData` for what is no message.
pub(crate) fn take<T: DeserializeOwned>(buffer: &mut Vec<u8>) -> io::Result<Option<(T, Vec<u8>)>> {
    let Some(lengths) = buffer.first_chunk::<8>() else {
        return Ok(None);
    };
    let (head, body) = parse_lengths(*lengths)?;
    let end = 8 + head + body;
    if buffer.len() < end {
        return Ok(None);
    }
    let rest = buffer.split_off(end);
    let message = std::mem::replace(buffer, rest).split_off(8);
    parse(message, head).map(Some)
}

fn parse_lengths(bytes: [u8; 8]) -> io::Result<(usize, usize)> {
    let length = |at: usize| {
        let bytes = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        u32::from_le_bytes(bytes) as usize
    };
    let (head, body) = (length(0), length(4));
    if head > HEAD_BYTES_MAX || body > BODY_BYTES_MAX {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "a message is too long",
        ));
    }
    Ok((head, body))
}

fn parse<T: DeserializeOwned>(mut message: Vec<u8>, head: usize) -> io::Result<(T, Vec<u8>)> {
    let body = message.split_off(head);
    let head = serde_json::from_slice(&message)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    Ok((head, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages() -> Vec<(FromGuest, Vec<u8>)> {
        let hello = FromGuest::Hello {
            release: "6.1".to_owned(),
            uptime_ms: 900,
        };
        vec![
            (hello, Vec::new()),
            (FromGuest::Output { stderr: true }, b"\0\xff\n".to_vec()),
            (FromGuest::Done(JobExit::Code(4)), Vec::new()),
        ]
    }

    #[test]
    fn messages_come_back_however_they_are_cut() {
        let mut wire = Vec::new();
        for (head, body) in messages() {
            send(&mut wire, &head, &body).unwrap();
        }
        let mut reader = &wire[..];
        for expected in messages() {
            assert_eq!(receive::<FromGuest>(&mut reader).unwrap(), expected);
        }
        let (mut buffer, mut seen) = (Vec::new(), Vec::new());
        for byte in wire {
            buffer.push(byte);
            seen.extend(take::<FromGuest>(&mut buffer).unwrap());
        }
        assert_eq!(seen, messages());
        assert!(buffer.is_empty());
    }

    #[test]
    fn noise_is_no_message() {
        let mut noise = b"BUG: unable to handle".to_vec();
        let error = take::<FromGuest>(&mut noise).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        let mut other = Vec::new();
        send(&mut other, &"something else", b"").unwrap();
        assert!(take::<FromGuest>(&mut other).is_err());
    }
}
