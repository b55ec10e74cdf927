//! The mutating calls, as words: [`OpKind`] classifies them, [`Op`] is one of them in a trace.

use std::fmt;
use std::str::FromStr;

/// A call that changes what a file system holds, or what of it is durable.
///
/// Matches on it have no wildcard arm, so that a new call cannot be added without the trace, the
/// faults and the model following. `Display` and `FromStr` are inverses: rules, traces and
/// reports use the same word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OpKind {
    /// `openat` that can create or truncate (`O_CREAT` or `O_TRUNC`). Any other open only looks.
    Openat,
    /// `mkdirat`.
    Mkdirat,
    /// `write`.
    Write,
    /// `pwrite`.
    Pwrite,
    /// `ftruncate`.
    Ftruncate,
    /// `fchmod`.
    Fchmod,
    /// `fchown`.
    Fchown,
    /// `fsetxattr`.
    Fsetxattr,
    /// `symlinkat`.
    Symlinkat,
    /// `linkat`.
    Linkat,
    /// `renameat2`, with any flags.
    Renameat2,
    /// `unlinkat`, of a file or of a directory.
    Unlinkat,
    /// `sync_file_range`, used to start write-back. Promises nothing about durability.
    SyncFileRange,
    /// `fdatasync`.
    Fdatasync,
    /// `fsync`.
    Fsync,
    /// `syncfs`.
    Syncfs,
}

impl OpKind {
    /// Every kind, in the order of declaration.
    pub const ALL: [Self; 16] = [
        Self::Openat,
        Self::Mkdirat,
        Self::Write,
        Self::Pwrite,
        Self::Ftruncate,
        Self::Fchmod,
        Self::Fchown,
        Self::Fsetxattr,
        Self::Symlinkat,
        Self::Linkat,
        Self::Renameat2,
        Self::Unlinkat,
        Self::SyncFileRange,
        Self::Fdatasync,
        Self::Fsync,
        Self::Syncfs,
    ];

    /// The syscall's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Openat => "openat",
            Self::Mkdirat => "mkdirat",
            Self::Write => "write",
            Self::Pwrite => "pwrite",
            Self::Ftruncate => "ftruncate",
            Self::Fchmod => "fchmod",
            Self::Fchown => "fchown",
            Self::Fsetxattr => "fsetxattr",
            Self::Symlinkat => "symlinkat",
            Self::Linkat => "linkat",
            Self::Renameat2 => "renameat2",
            Self::Unlinkat => "unlinkat",
            Self::SyncFileRange => "sync_file_range",
            Self::Fdatasync => "fdatasync",
            Self::Fsync => "fsync",
            Self::Syncfs => "syncfs",
        }
    }

    /// Whether the call makes earlier changes durable. Such a call changes no content, so it can
    /// be dropped to see whether anything depended on it.
    ///
    /// `sync_file_range` is not among them: it waits for no disk cache and writes no metadata
    /// (`sync_file_range(2)`, "Warning").
    pub const fn is_sync(self) -> bool {
        match self {
            Self::Fdatasync | Self::Fsync | Self::Syncfs => true,
            Self::Openat
            | Self::Mkdirat
            | Self::Write
            | Self::Pwrite
            | Self::Ftruncate
            | Self::Fchmod
            | Self::Fchown
            | Self::Fsetxattr
            | Self::Symlinkat
            | Self::Linkat
            | Self::Renameat2
            | Self::Unlinkat
            | Self::SyncFileRange => false,
        }
    }

    /// The position in [`OpKind::ALL`], for tables by kind.
    pub(crate) const fn position(self) -> usize {
        self as usize
    }
}

impl fmt::Display for OpKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A word that names no mutating call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no mutating call; known are openat, mkdirat, write, fsync and the like")]
pub struct UnknownOpKind(pub String);

impl FromStr for OpKind {
    type Err = UnknownOpKind;

    fn from_str(word: &str) -> Result<Self, UnknownOpKind> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == word)
            .ok_or_else(|| UnknownOpKind(word.to_owned()))
    }
}

/// One mutating call in a trace.
///
/// Prints as the call, its ordinal, its detail and its paths: `renameat2#1 EXCHANGE .live.new
/// live`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Op {
    /// The place among all mutating calls, from 0.
    pub index: u32,
    /// The place among the calls of the same kind, from 1.
    pub ordinal: u32,
    /// Which call it is.
    pub kind: OpKind,
    /// The path it acts on, relative to the traced root; `.` for the root itself. Names that are
    /// not UTF-8 are shown with replacement characters.
    pub path: String,
    /// The new path of a rename or link.
    pub second_path: Option<String>,
    /// What was asked for besides the paths: bytes, mode, flags. Empty if there is nothing.
    pub detail: String,
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.kind, self.ordinal)?;
        if !self.detail.is_empty() {
            write!(f, " {}", self.detail)?;
        }
        write!(f, " {}", self.path)?;
        if let Some(second) = &self.second_path {
            write!(f, " {second}")?;
        }
        Ok(())
    }
}

/// A mutating call that has returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completed {
    /// The call.
    pub op: Op,
    /// The error it returned, `None` for success. An error that carries no number counts as
    /// `EIO`.
    pub errno: Option<i32>,
}

impl fmt::Display for Completed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.errno {
            None => write!(f, "{}", self.op),
            Some(errno) => write!(
                f,
                "{} = {}",
                self.op,
                std::io::Error::from_raw_os_error(errno)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_read_back_from_its_word() {
        for (position, kind) in OpKind::ALL.into_iter().enumerate() {
            assert_eq!(kind.to_string().parse(), Ok(kind));
            assert_eq!(kind.position(), position);
        }
        assert_eq!(
            "rename".parse::<OpKind>(),
            Err(UnknownOpKind("rename".to_owned()))
        );
    }

    #[test]
    fn an_op_prints_like_the_call() {
        let op = Op {
            index: 7,
            ordinal: 1,
            kind: OpKind::Renameat2,
            path: ".live.new".to_owned(),
            second_path: Some("live".to_owned()),
            detail: "EXCHANGE".to_owned(),
        };
        assert_eq!(op.to_string(), "renameat2#1 EXCHANGE .live.new live");
    }
}
