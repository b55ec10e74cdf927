//! Verdicts and kinds of violation (crash model, section 7).

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is wrong with a recovered tree.
///
/// The order is the order of severity that reports use.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum ViolationKind {
    /// Files of different generations stand side by side.
    Mixed,
    /// A file, or the whole directory, is empty although no generation has it so.
    Empty,
    /// A file is a beginning of its content, or its end was lost.
    Truncated,
    /// A file holds what no generation ever wrote, or cannot be read.
    Corrupt,
    /// The target, or an entry of it, is not there.
    Missing,
    /// Only modes or owners differ.
    Mode,
    /// A generation that an acknowledgement had superseded came back.
    LostAcknowledged,
    /// More remains beside or in the target than is allowed.
    Leftover,
    /// The file system could not be mounted, or not be used after the mount.
    Unmountable,
    /// Recovering and running once more does not end in the new tree.
    Diverges,
}

impl ViolationKind {
    /// Every kind, in order of severity.
    pub const ALL: [Self; 10] = [
        Self::Mixed,
        Self::Empty,
        Self::Truncated,
        Self::Corrupt,
        Self::Missing,
        Self::Mode,
        Self::LostAcknowledged,
        Self::Leftover,
        Self::Unmountable,
        Self::Diverges,
    ];

    /// The name used in scenarios, reports and certificates.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mixed => "mixed",
            Self::Empty => "empty",
            Self::Truncated => "truncated",
            Self::Corrupt => "corrupt",
            Self::Missing => "missing",
            Self::Mode => "mode",
            Self::LostAcknowledged => "lost-acknowledged",
            Self::Leftover => "leftover",
            Self::Unmountable => "unmountable",
            Self::Diverges => "diverges",
        }
    }
}

impl fmt::Display for ViolationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for ViolationKind {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == text)
            .ok_or_else(|| UnknownName {
                what: "violation kind",
                name: text.to_owned(),
            })
    }
}

/// A name that stands for nothing known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what} `{name}`")]
pub struct UnknownName {
    /// What was looked for, such as `violation kind`.
    pub what: &'static str,
    /// The text that was given.
    pub name: String,
}

/// The end of a case, a file system or a whole run. Only [`Verdict::Holds`] is a pass.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Everything that was looked at is as promised.
    Holds,
    /// This machine or kernel lacks something, so nothing was tested.
    Unsupported,
    /// The harness could not come to a verdict: results differ from run to run, or the budget was
    /// too small to say anything.
    Inconclusive,
    /// At least one crash state breaks the promise.
    Violated,
    /// A writer known to be wrong was not caught, so no other verdict can be believed.
    HarnessBroken,
}

impl Verdict {
    /// The name used in reports and certificates.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Unsupported => "unsupported",
            Self::Inconclusive => "inconclusive",
            Self::Violated => "violated",
            Self::HarnessBroken => "harness-broken",
        }
    }

    /// The worse of two verdicts: a whole is as good as its worst part.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        self.max(other)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
