//! [`Content`]: what a file holds, whole where it is small.

use serde::{Deserialize, Serialize};

/// What a file holds.
///
/// Two contents are equal when their bytes are, however they are kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// Every byte.
    Whole(#[serde(with = "byte_text")] Vec<u8>),
    /// What is kept of a file above the capture's limit.
    Summary(Summary),
}

/// What is kept of a large file: enough to tell it from any other, to compare its beginning, and to
/// see that its end was never written.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// Bytes in the file.
    pub length: u64,
    /// The blake3 hash of all of them.
    #[serde(with = "hex_text")]
    pub hash: blake3::Hash,
    /// How many zero bytes the file ends in.
    pub zero_tail: u64,
    /// The first bytes.
    #[serde(with = "byte_text")]
    pub prefix: Vec<u8>,
}

impl Content {
    /// Bytes in the file.
    pub fn length(&self) -> u64 {
        match self {
            Self::Whole(bytes) => bytes.len() as u64,
            Self::Summary(summary) => summary.length,
        }
    }

    /// Whether the file has no bytes.
    pub fn is_empty(&self) -> bool {
        self.length() == 0
    }

    /// The blake3 hash of all bytes.
    pub fn hash(&self) -> blake3::Hash {
        match self {
            Self::Whole(bytes) => blake3::hash(bytes),
            Self::Summary(summary) => summary.hash,
        }
    }

    /// How many zero bytes the file ends in.
    pub fn zero_tail(&self) -> u64 {
        match self {
            Self::Whole(bytes) => zero_tail(bytes),
            Self::Summary(summary) => summary.zero_tail,
        }
    }

    /// The first bytes, as far as they are kept.
    pub fn known(&self) -> &[u8] {
        match self {
            Self::Whole(bytes) => bytes,
            Self::Summary(summary) => &summary.prefix,
        }
    }
}

/// How many zero bytes a slice ends in.
pub(crate) fn zero_tail(bytes: &[u8]) -> u64 {
    bytes.iter().rev().take_while(|&&byte| byte == 0).count() as u64
}

impl PartialEq for Content {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Whole(left), Self::Whole(right)) => left == right,
            _ => self.length() == other.length() && self.hash() == other.hash(),
        }
    }
}

impl Eq for Content {}

/// Bytes as text that stays readable where it can: `{"text": ".."}`, else `{"base64": ".."}`.
pub(crate) mod byte_text {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    enum ByteText<T> {
        Text(T),
        Base64(T),
    }

    pub(crate) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        // Control characters take six bytes each in JSON, so a file of zeros goes as base64.
        let control = |character: char| character.is_control() && character != '\n';
        match str::from_utf8(bytes) {
            Ok(text) if !text.contains(control) => ByteText::Text(text).serialize(serializer),
            _ => ByteText::Base64(STANDARD.encode(bytes).as_str()).serialize(serializer),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<u8>, D::Error> {
        match ByteText::<String>::deserialize(deserializer)? {
            ByteText::Text(text) => Ok(text.into_bytes()),
            ByteText::Base64(text) => STANDARD.decode(text).map_err(serde::de::Error::custom),
        }
    }
}

/// A hash as hexadecimal digits.
pub(crate) mod hex_text {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        hash: &blake3::Hash,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(hash)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<blake3::Hash, D::Error> {
        let text = String::deserialize(deserializer)?;
        blake3::Hash::from_hex(text).map_err(serde::de::Error::custom)
    }
}
