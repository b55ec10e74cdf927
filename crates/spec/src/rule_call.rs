//! Which calls a rule means: [`CallPattern`], and the [`CallView`] of a call it is held against.

use std::fmt;

use crate::rule_path::PathPattern;

/// A kind of call that a rule can name.
///
/// The words are the syscalls' own. What a program reaches by a sibling (`rename`, `open`,
/// `pwritev`, `chmod`) has the word of the most general one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CallKind {
    /// Any mutating call.
    Any,
    /// `openat` that can create or truncate.
    Openat,
    /// `mkdirat`.
    Mkdirat,
    /// `mknodat`.
    Mknodat,
    /// `write`.
    Write,
    /// `pwrite`.
    Pwrite,
    /// `copy_file_range`, `sendfile` and the like.
    CopyFileRange,
    /// `ftruncate`.
    Ftruncate,
    /// `fallocate`.
    Fallocate,
    /// `fchmod`.
    Fchmod,
    /// `fchown`.
    Fchown,
    /// `utimensat`.
    Utimensat,
    /// `fsetxattr`.
    Fsetxattr,
    /// `fremovexattr`.
    Fremovexattr,
    /// `symlinkat`.
    Symlinkat,
    /// `linkat`.
    Linkat,
    /// `renameat2`, with any flags.
    Renameat2,
    /// `renameat2` with `RENAME_EXCHANGE`, and no other.
    Exchange,
    /// `unlinkat`.
    Unlinkat,
    /// `sync_file_range`.
    SyncFileRange,
    /// `msync`.
    Msync,
    /// `fdatasync`.
    Fdatasync,
    /// `fsync`.
    Fsync,
    /// `syncfs`.
    Syncfs,
    /// `sync`.
    Sync,
}

impl CallKind {
    /// Every kind.
    pub const ALL: [Self; 25] = [
        Self::Any,
        Self::Openat,
        Self::Mkdirat,
        Self::Mknodat,
        Self::Write,
        Self::Pwrite,
        Self::CopyFileRange,
        Self::Ftruncate,
        Self::Fallocate,
        Self::Fchmod,
        Self::Fchown,
        Self::Utimensat,
        Self::Fsetxattr,
        Self::Fremovexattr,
        Self::Symlinkat,
        Self::Linkat,
        Self::Renameat2,
        Self::Exchange,
        Self::Unlinkat,
        Self::SyncFileRange,
        Self::Msync,
        Self::Fdatasync,
        Self::Fsync,
        Self::Syncfs,
        Self::Sync,
    ];

    /// The word in a rule.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Any => "*",
            Self::Openat => "openat",
            Self::Mkdirat => "mkdirat",
            Self::Mknodat => "mknodat",
            Self::Write => "write",
            Self::Pwrite => "pwrite",
            Self::CopyFileRange => "copy_file_range",
            Self::Ftruncate => "ftruncate",
            Self::Fallocate => "fallocate",
            Self::Fchmod => "fchmod",
            Self::Fchown => "fchown",
            Self::Utimensat => "utimensat",
            Self::Fsetxattr => "fsetxattr",
            Self::Fremovexattr => "fremovexattr",
            Self::Symlinkat => "symlinkat",
            Self::Linkat => "linkat",
            Self::Renameat2 => "renameat2",
            Self::Exchange => "exchange",
            Self::Unlinkat => "unlinkat",
            Self::SyncFileRange => "sync_file_range",
            Self::Msync => "msync",
            Self::Fdatasync => "fdatasync",
            Self::Fsync => "fsync",
            Self::Syncfs => "syncfs",
            Self::Sync => "sync",
        }
    }

    /// The kind of that word.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == word)
    }

    /// Whether a call of this kind takes bytes and says how many.
    pub const fn is_write(self) -> bool {
        matches!(self, Self::Write | Self::Pwrite)
    }

    /// Whether a rule that names this kind means a call of that one.
    fn covers(self, call: Self) -> bool {
        match self {
            Self::Any => true,
            Self::Renameat2 => matches!(call, Self::Renameat2 | Self::Exchange),
            kind => kind == call,
        }
    }
}

impl fmt::Display for CallKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Which of the calls that match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ordinal {
    /// Each of them.
    Every,
    /// This one, counted from 1.
    Nth(u32),
}

impl fmt::Display for Ordinal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Every => f.write_str("*"),
            Self::Nth(ordinal) => write!(f, "{ordinal}"),
        }
    }
}

/// Which calls a rule means.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CallPattern {
    /// Their kind.
    pub kind: CallKind,
    /// Which of those that match kind and path.
    pub ordinal: Ordinal,
    /// The path that one of the call's paths has to match; `None` for any.
    pub path: Option<PathPattern>,
}

impl CallPattern {
    /// Whether a call has the kind and the path. The ordinal is counted by
    /// [`RuleCounter`](crate::RuleCounter).
    pub fn matches(&self, call: &CallView<'_>) -> bool {
        self.kind.covers(call.kind)
            && self.path.as_ref().is_none_or(|pattern| {
                pattern.matches(call.path) || call.second_path.is_some_and(|p| pattern.matches(p))
            })
    }

    pub(crate) fn is_valid(&self) -> bool {
        self.ordinal != Ordinal::Nth(0)
    }
}

/// A call as rules see it.
#[derive(Debug, Clone, Copy)]
pub struct CallView<'a> {
    /// Its kind: [`CallKind::Exchange`] for a `renameat2` with that flag, never
    /// [`CallKind::Any`].
    pub kind: CallKind,
    /// The path it acts on.
    pub path: &'a str,
    /// The new path of a rename or link.
    pub second_path: Option<&'a str>,
}
