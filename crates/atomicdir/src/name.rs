//! Which names are accepted, and how staging directories are named.

use std::ffi::{OsStr, OsString};

/// The longest name that Linux file systems take (`NAME_MAX`).
pub const NAME_BYTES_MAX: usize = 255;

const INFIX: &str = ".atomicdir-";
const TOKEN_DIGITS: usize = 16;

/// The longest name of a target: its staging directory, beside it, needs a longer one.
pub const TARGET_NAME_BYTES_MAX: usize = NAME_BYTES_MAX - 1 - INFIX.len() - TOKEN_DIGITS;

/// Why a name is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The name is empty.
    #[error("the name is empty")]
    Empty,
    /// The name is `.` or `..`.
    #[error("`.` and `..` are no names of their own")]
    Dot,
    /// The name has a slash: it must be one component.
    #[error("the name has a slash; give the parent directory and one name in it")]
    Slash,
    /// The name has a zero byte.
    #[error("the name has a zero byte")]
    Nul,
    /// The name is too long.
    #[error("the name has {bytes} bytes, and at most {bytes_max} can be used")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The longest that is accepted here.
        bytes_max: usize,
    },
    /// The target is named like a staging directory, so the sweep of another target would remove
    /// it.
    #[error("the name is one that staging directories have, and would be swept away")]
    Staging,
}

/// Checks the name of an entry.
pub(crate) fn check_entry(name: &OsStr) -> Result<(), NameError> {
    check_component(name, NAME_BYTES_MAX)
}

/// Checks the name of a target.
pub(crate) fn check_target(name: &OsStr) -> Result<(), NameError> {
    check_component(name, TARGET_NAME_BYTES_MAX)?;
    let text = name.as_encoded_bytes();
    let is_staging = text
        .len()
        .checked_sub(INFIX.len() + TOKEN_DIGITS)
        .filter(|&infix_at| infix_at > 1 && text[0] == b'.')
        .is_some_and(|infix_at| is_infix_and_token(&text[infix_at..]));
    if is_staging {
        Err(NameError::Staging)
    } else {
        Ok(())
    }
}

fn check_component(name: &OsStr, bytes_max: usize) -> Result<(), NameError> {
    let text = name.as_encoded_bytes();
    if text.is_empty() {
        Err(NameError::Empty)
    } else if text == b"." || text == b".." {
        Err(NameError::Dot)
    } else if text.contains(&b'/') {
        Err(NameError::Slash)
    } else if text.contains(&0) {
        Err(NameError::Nul)
    } else if text.len() > bytes_max {
        Err(NameError::TooLong {
            bytes: text.len(),
            bytes_max,
        })
    } else {
        Ok(())
    }
}

/// The name of a staging directory of `target`: `.target.atomicdir-0123456789abcdef`.
///
/// The leading dot makes watchers of the parent ignore it (the kubelet skips such names).
pub(crate) fn staging_name(target: &OsStr, token: u64) -> OsString {
    let mut name = OsString::from(".");
    name.push(target);
    name.push(format!("{INFIX}{token:016x}"));
    name
}

/// Whether `name` is one that a staging directory of `target` has.
///
/// No name belongs to two targets: what stands between the first dot and the last 27 bytes is the
/// target's whole name.
pub fn is_staging_name(target: &OsStr, name: &OsStr) -> bool {
    name.as_encoded_bytes()
        .strip_prefix(b".")
        .and_then(|rest| rest.strip_prefix(target.as_encoded_bytes()))
        .is_some_and(is_infix_and_token)
}

fn is_infix_and_token(text: &[u8]) -> bool {
    text.strip_prefix(INFIX.as_bytes()).is_some_and(|token| {
        token.len() == TOKEN_DIGITS
            && token
                .iter()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(name: &str) -> Result<(), NameError> {
        check_target(OsStr::new(name))
    }

    #[test]
    fn traps_are_refused() {
        assert_eq!(target("live"), Ok(()));
        assert_eq!(target("..data"), Ok(()));
        assert_eq!(target(""), Err(NameError::Empty));
        assert_eq!(target("."), Err(NameError::Dot));
        assert_eq!(target(".."), Err(NameError::Dot));
        assert_eq!(target("/"), Err(NameError::Slash));
        assert_eq!(target("a/b"), Err(NameError::Slash));
        assert_eq!(target("a\0"), Err(NameError::Nul));
        assert_eq!(
            target(".live.atomicdir-0123456789abcdef"),
            Err(NameError::Staging)
        );
        assert_eq!(
            check_entry(OsStr::new(&"x".repeat(256))),
            Err(NameError::TooLong {
                bytes: 256,
                bytes_max: 255
            })
        );
    }

    #[test]
    fn the_longest_target_still_has_a_staging_name() {
        let longest = "x".repeat(TARGET_NAME_BYTES_MAX);
        assert_eq!(target(&longest), Ok(()));
        assert_eq!(staging_name(OsStr::new(&longest), 7).len(), NAME_BYTES_MAX);
        assert!(target(&(longest + "x")).is_err());
    }

    #[test]
    fn a_staging_name_belongs_to_one_target() {
        let name = staging_name(OsStr::new("live"), 0xabc);
        assert_eq!(name, ".live.atomicdir-0000000000000abc");
        assert!(is_staging_name(OsStr::new("live"), &name));
        assert!(!is_staging_name(OsStr::new("liv"), &name));
        assert!(!is_staging_name(
            OsStr::new("live"),
            OsStr::new(".live.atomicdir-abc")
        ));
        assert!(!is_staging_name(
            OsStr::new("live"),
            OsStr::new(".live.atomicdir-0000000000000ABC")
        ));
    }
}
