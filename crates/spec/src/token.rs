//! Replay tokens: one crash state as text.

use std::fmt;
use std::str::FromStr;

/// Names one crash state: which case, which recording, which epoch, which version of which unit.
///
/// The text is `PROFILE/SCENARIO/RECORDING/eEPOCH/PATH`, such as
/// `ext4/control-exchange-without-fsync/neighbor-commit@7/e3/1042=1,1050=0`. It needs no quoting in
/// a shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayToken {
    /// File-system profile.
    pub profile: String,
    /// Scenario.
    pub scenario: String,
    /// Recording, as [`Disturbance`] prints it.
    pub recording: Disturbance,
    /// Number of the epoch in the recording, from 0.
    pub epoch: u32,
    /// Choices, as the explorer's path prints them.
    pub path: String,
}

/// How one recording was disturbed.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(into = "String", try_from = "String")]
pub enum Disturbance {
    /// Not at all.
    Undisturbed,
    /// A neighbour commit at this boundary: before the call of this index, or after the last.
    NeighborCommit(u32),
}

impl fmt::Display for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Undisturbed => f.write_str("undisturbed"),
            Self::NeighborCommit(boundary) => write!(f, "neighbor-commit@{boundary}"),
        }
    }
}

impl FromStr for Disturbance {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "undisturbed" {
            return Ok(Self::Undisturbed);
        }
        text.strip_prefix("neighbor-commit@")
            .and_then(|boundary| boundary.parse().ok())
            .map(Self::NeighborCommit)
            .ok_or_else(|| TokenError::Part {
                what: "recording",
                text: text.to_owned(),
            })
    }
}

impl From<Disturbance> for String {
    fn from(disturbance: Disturbance) -> Self {
        disturbance.to_string()
    }
}

impl TryFrom<String> for Disturbance {
    type Error = TokenError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

/// Why a text is no token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The number of parts is wrong.
    #[error("`{0}` is no replay token: it should read PROFILE/SCENARIO/RECORDING/eEPOCH/CHOICES")]
    Shape(String),
    /// One part cannot be read.
    #[error("`{text}` is no {what} of a replay token")]
    Part {
        /// Which part.
        what: &'static str,
        /// The text that stands there.
        text: String,
    },
}

impl fmt::Display for ReplayToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            profile,
            scenario,
            recording,
            epoch,
            path,
        } = self;
        write!(f, "{profile}/{scenario}/{recording}/e{epoch}/{path}")
    }
}

impl FromStr for ReplayToken {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts: Vec<&str> = text.split('/').collect();
        let [profile, scenario, recording, epoch, path] = parts[..] else {
            return Err(TokenError::Shape(text.to_owned()));
        };
        let number = epoch
            .strip_prefix('e')
            .and_then(|number| number.parse().ok());
        let epoch = number.ok_or_else(|| TokenError::Part {
            what: "epoch",
            text: epoch.to_owned(),
        })?;
        if profile.is_empty() || scenario.is_empty() {
            return Err(TokenError::Shape(text.to_owned()));
        }
        Ok(Self {
            profile: profile.to_owned(),
            scenario: scenario.to_owned(),
            recording: recording.parse()?,
            epoch,
            path: path.to_owned(),
        })
    }
}
