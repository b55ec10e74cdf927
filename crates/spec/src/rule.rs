//! Fault rules as text: [`FaultRule`] and [`FaultRules`].
//!
//! The same text stands in scenarios, on the command line, in reports and in replay tokens:
//!
//! ```text
//! kill after renameat2#1
//! eio at fsync#2
//! enospc at write#3 short=4096
//! short 100 at write#1
//! errno EINTR after fsync#1
//! drop fsync#3
//! neighbor-commit after exchange#1
//! writeback after write#2
//! pause before renameat2#1
//! eio at fsync#* path=*/tls.key
//! ```
//!
//! A rule is an action, a moment and a call. `#2` is the second of the calls that match the kind
//! and the path, counted from 1; `#*` is each of them. Rules are separated by `;` or by the end of
//! a line. `Display` and `FromStr` are inverses.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::rule_call::CallPattern;
use crate::rule_errno::FaultErrno;

/// What is done to a subject at one of its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaultAction {
    /// The subject is killed. Before or after the call.
    Kill,
    /// The call reports this error. At the call: it is not made. After it: it is made all the
    /// same.
    Errno {
        /// The error.
        errno: FaultErrno,
        /// For a write at which the error strikes: so many bytes are taken, which the call
        /// reports, and it is the next write that fails. That is how Linux reports a disk that
        /// fills up in the middle of a write (write(2)).
        short: Option<u64>,
    },
    /// The write takes at most so many bytes and says so.
    Short {
        /// How many.
        bytes: u64,
    },
    /// The call is not made and reports success.
    Drop,
    /// Another file on the same file system is created and fsynced, so that the journal commits.
    NeighborCommit,
    /// Dirty data is written out, without a flush.
    Writeback,
    /// Other processes run on for a while.
    Pause,
}

/// On which side of the call something is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum When {
    /// Before the call is made.
    Before,
    /// In place of the call, or to it.
    At,
    /// After it was made, before the subject learns of it.
    After,
}

impl When {
    /// The word in a rule.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::At => "at",
            Self::After => "after",
        }
    }
}

/// Where a rule acts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Point {
    /// On which side of the call.
    pub when: When,
    /// Which call.
    pub call: CallPattern,
}

/// One fault: what is done, and where.
///
/// Not every combination has a text. [`FaultRule::is_valid`] says which have one; parsing gives
/// no others.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct FaultRule {
    /// What is done.
    pub action: FaultAction,
    /// Where.
    pub point: Point,
}

impl FaultAction {
    /// The moments that the action can have.
    pub const fn moments(self) -> &'static [When] {
        match self {
            Self::Kill | Self::NeighborCommit | Self::Writeback | Self::Pause => {
                &[When::Before, When::After]
            }
            Self::Errno { short: None, .. } => &[When::At, When::After],
            Self::Errno { short: Some(_), .. } | Self::Short { .. } | Self::Drop => &[When::At],
        }
    }

    /// Whether the action is about the number of bytes written, so that only writes can have it.
    pub const fn needs_write(self) -> bool {
        match self {
            Self::Errno { short, .. } => short.is_some(),
            Self::Short { .. } => true,
            Self::Kill | Self::Drop | Self::NeighborCommit | Self::Writeback | Self::Pause => false,
        }
    }
}

impl FaultRule {
    /// Whether the rule says something that can be done, and so has a text that reads back as it.
    pub fn is_valid(&self) -> bool {
        let Point { when, call } = &self.point;
        self.action.moments().contains(when)
            && (!self.action.needs_write() || call.kind.is_write())
            && call.is_valid()
    }
}

impl fmt::Display for FaultRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Point { when, call } = &self.point;
        match self.action {
            FaultAction::Kill => write!(f, "kill {} ", when.word())?,
            FaultAction::Errno { errno, .. } if *when == When::At => {
                write!(f, "{} at ", errno.name().to_ascii_lowercase())?;
            }
            FaultAction::Errno { errno, .. } => write!(f, "errno {errno} {} ", when.word())?,
            FaultAction::Short { bytes } => write!(f, "short {bytes} at ")?,
            FaultAction::Drop => f.write_str("drop ")?,
            FaultAction::NeighborCommit => write!(f, "neighbor-commit {} ", when.word())?,
            FaultAction::Writeback => write!(f, "writeback {} ", when.word())?,
            FaultAction::Pause => write!(f, "pause {} ", when.word())?,
        }
        write!(f, "{}#{}", call.kind, call.ordinal)?;
        if let FaultAction::Errno {
            short: Some(bytes), ..
        } = self.action
        {
            write!(f, " short={bytes}")?;
        }
        match &call.path {
            Some(path) => write!(f, " path={path}"),
            None => Ok(()),
        }
    }
}

impl From<FaultRule> for String {
    fn from(rule: FaultRule) -> Self {
        rule.to_string()
    }
}

/// Several rules, in the order in which they were written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct FaultRules(pub Vec<FaultRule>);

/// The text is the rules with `; ` between them.
impl fmt::Display for FaultRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, rule) in self.0.iter().enumerate() {
            let separator = if position == 0 { "" } else { "; " };
            write!(f, "{separator}{rule}")?;
        }
        Ok(())
    }
}

impl From<FaultRules> for String {
    fn from(rules: FaultRules) -> Self {
        rules.to_string()
    }
}
