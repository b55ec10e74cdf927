//! [`Name`] and [`TreePath`]: what the kernel calls things, as text that can be read and sent.

use std::ffi::OsStr;
use std::fmt::{self, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The name of a directory entry or of an extended attribute, or a link's target: bytes in no
/// encoding in particular.
///
/// Its text is the bytes themselves where they are printable UTF-8. A backslash is doubled, and any
/// other byte is written as `\xNN`. `Display` and `FromStr` are inverses.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Vec<u8>);

impl Name {
    /// The bytes that the kernel knows.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The name for functions of the standard library.
    pub fn as_os_str(&self) -> &OsStr {
        OsStr::from_bytes(&self.0)
    }
}

impl From<&[u8]> for Name {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }
}

impl From<Vec<u8>> for Name {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

impl From<&OsStr> for Name {
    fn from(name: &OsStr) -> Self {
        Self(name.as_bytes().to_vec())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for character in chunk.valid().chars() {
                if character == '\\' {
                    f.write_str("\\\\")?;
                } else if character.is_control() {
                    write_escaped(f, character.encode_utf8(&mut [0; 4]).as_bytes())?;
                } else {
                    f.write_char(character)?;
                }
            }
            write_escaped(f, chunk.invalid())?;
        }
        Ok(())
    }
}

fn write_escaped(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "\\x{byte:02x}"))
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

/// A name's text holds an escape that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` holds a backslash that starts neither `\\\\` nor `\\xNN`")]
pub struct ParseNameError(String);

impl FromStr for Name {
    type Err = ParseNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        unescape(text)
            .map(Self)
            .ok_or_else(|| ParseNameError(text.to_owned()))
    }
}

fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((plain, escape)) = rest.split_once('\\') {
        bytes.extend_from_slice(plain.as_bytes());
        if let Some(after) = escape.strip_prefix('\\') {
            bytes.push(b'\\');
            rest = after;
        } else {
            let digits = escape.strip_prefix('x')?.get(..2)?;
            if digits.starts_with('+') {
                return None;
            }
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &escape[3..];
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    Some(bytes)
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

/// Where something stands below a tree's root. Its text is names joined by `/`, and `.` for the
/// root itself. Paths sort so that a directory comes right before what is in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TreePath(Vec<Name>);

impl TreePath {
    /// The root itself.
    pub fn root() -> Self {
        Self::default()
    }

    /// Whether this is the root itself.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The path of an entry of this directory.
    #[must_use]
    pub fn join(&self, name: impl Into<Name>) -> Self {
        let mut names = self.0.clone();
        names.push(name.into());
        Self(names)
    }

    /// The directory this is in; the root is in none.
    pub fn parent(&self) -> Option<Self> {
        let (_, parent) = self.0.split_last()?;
        Some(Self(parent.to_vec()))
    }
}

impl fmt::Display for TreePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((first, rest)) = self.0.split_first() else {
            return f.write_char('.');
        };
        first.fmt(f)?;
        rest.iter().try_for_each(|name| write!(f, "/{name}"))
    }
}

impl FromStr for TreePath {
    type Err = ParseNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "." {
            return Ok(Self::root());
        }
        text.split('/')
            .map(str::parse)
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

impl Serialize for TreePath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TreePath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn text_of_names() {
        let check = |bytes: &[u8], text: &str| assert_eq!(Name::from(bytes).to_string(), text);
        check(b"key.pem", "key.pem");
        check("schlüssel".as_bytes(), "schlüssel");
        check(b"a\\x41", "a\\\\x41");
        check(b"\xff\n", "\\xff\\x0a");
    }

    #[test]
    fn wrong_escapes_are_refused() {
        for wrong in ["\\", "\\x", "\\x4", "\\xgg", "\\x+4", "\\n", "\\xé"] {
            assert!(wrong.parse::<Name>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_directory_sorts_right_before_its_entries() {
        let path = |text: &str| text.parse::<TreePath>().unwrap();
        let mut paths = ["a-b", "a/b", ".", "a"].map(path);
        paths.sort();
        assert_eq!(paths.map(|path| path.to_string()), [".", "a", "a/b", "a-b"]);
    }

    proptest! {
        #[test]
        fn text_round_trips(bytes: Vec<u8>) {
            let name = Name::from(bytes);
            prop_assert_eq!(name.to_string().parse(), Ok(name));
        }
    }
}
