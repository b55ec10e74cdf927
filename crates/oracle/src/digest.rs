//! [`TreeDigest`]: a snapshot in 32 bytes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::content::hex_text;
use crate::{Attributes, Node};

/// The blake3 hash of a snapshot: two snapshots have the same one exactly when they are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TreeDigest(#[serde(with = "hex_text")] blake3::Hash);

impl TreeDigest {
    /// The digest of everything below and including a node.
    pub(crate) fn of(root: &Node) -> Self {
        let mut encoder = Encoder(blake3::Hasher::new());
        encoder.node(root);
        Self(encoder.0.finalize())
    }

    /// The 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }
}

/// The text is 64 hexadecimal digits.
impl fmt::Display for TreeDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0.to_hex())
    }
}

/// A digest's text is not 64 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no tree digest: expected 64 hexadecimal digits")]
pub struct ParseDigestError(String);

impl FromStr for TreeDigest {
    type Err = ParseDigestError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let hash = blake3::Hash::from_hex(text).ok();
        hash.map(Self)
            .ok_or_else(|| ParseDigestError(text.to_owned()))
    }
}

/// Feeds a tree to the hash so that different trees give different byte streams: every variant has
/// a tag, and everything of variable length has its length before it.
struct Encoder(blake3::Hasher);

impl Encoder {
    fn node(&mut self, node: &Node) {
        match node {
            Node::Missing => self.tag(0),
            Node::File {
                attributes,
                content,
            } => {
                self.tag(1);
                self.attributes(attributes);
                self.number(content.length());
                // By hash and not by bytes, since large contents are kept by their hash only.
                self.0.update(content.hash().as_bytes());
            }
            Node::Directory {
                attributes,
                entries,
            } => {
                self.tag(2);
                self.attributes(attributes);
                self.number(entries.len() as u64);
                for (name, entry) in entries {
                    self.bytes(name.as_bytes());
                    self.node(entry);
                }
            }
            Node::Symlink { attributes, target } => {
                self.tag(3);
                self.attributes(attributes);
                self.bytes(target.as_bytes());
            }
            Node::Other { attributes, kind } => {
                self.tag(4);
                self.attributes(attributes);
                self.bytes(kind.name().as_bytes());
            }
            Node::Unreadable { errno } => {
                self.tag(5);
                self.0.update(&errno.to_le_bytes());
            }
        }
    }

    fn attributes(&mut self, attributes: &Attributes) {
        let Attributes {
            mode,
            owner,
            xattrs,
        } = attributes;
        self.number(u64::from(*mode));
        self.tag(u8::from(owner.is_some()));
        if let Some(owner) = owner {
            self.number(u64::from(owner.uid));
            self.number(u64::from(owner.gid));
        }
        self.tag(u8::from(xattrs.is_some()));
        if let Some(xattrs) = xattrs {
            self.number(xattrs.len() as u64);
            for (name, value) in xattrs {
                self.bytes(name.as_bytes());
                self.bytes(value.as_bytes());
            }
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.update(bytes);
    }

    fn number(&mut self, number: u64) {
        self.0.update(&number.to_le_bytes());
    }

    fn tag(&mut self, tag: u8) {
        self.0.update(&[tag]);
    }
}
