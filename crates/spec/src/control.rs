//! What a held subject and the harness say to each other over the control socket.
//!
//! One JSON message per packet of a `SOCK_SEQPACKET` pair. The subject sends a message after each
//! mutating syscall and waits for [`ToSubject::Go`], so every boundary belongs to the harness.

use serde::{Deserialize, Serialize};

/// A mutating syscall that has returned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Syscall {
    /// Position among all mutating syscalls of the subject, from 0.
    pub index: u32,
    /// Name and count by kind, such as `fsync#2`: the name rules and reports use.
    pub name: String,
    /// The whole call for a reader, such as `fsync#2 live/tls.key`.
    pub text: String,
    /// The error it returned, if any.
    pub errno: Option<i32>,
}

/// From the subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FromSubject {
    /// The subject is about to make its first call.
    Started,
    /// A call has returned; the subject waits.
    Returned(Syscall),
    /// Generation 1 is published and durable, says the subject; it waits.
    Acknowledged,
    /// The subject is done, with an error if there was one; it exits without waiting.
    Finished {
        /// What went wrong.
        error: Option<String>,
    },
}

/// To the subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToSubject {
    /// Go on to the next call.
    Go,
}

/// What a built-in writer is asked to do; its first message on the socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriterOrder {
    /// Name of the writer.
    pub writer: String,
    /// The directory that holds the target, an absolute path.
    pub parent: String,
    /// Name of the target in it.
    pub target: String,
    /// The tree to publish.
    pub tree: crate::TreeSpec,
    /// Seed of all that the writer draws.
    pub seed: u64,
}
