//! What the code under test says of itself: [`Claim`].

use std::fmt;

/// What an update says when it returns. It is held to that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Claim {
    /// The new tree is in place, and a power cut does not change that. `Ok(..)` is this.
    Durable,
    /// The new tree is in place; a power cut may bring the old one back.
    Live,
    /// The old tree is in place, and a power cut does not change that.
    Untouched,
    /// Old or new: it does not know. `Err(..)` is this, and so is death.
    Unknown,
}

impl Claim {
    /// The generations that may be seen while the system runs: 0 is the old tree, 1 the new one.
    pub(crate) fn live(self) -> &'static [usize] {
        match self {
            Self::Durable | Self::Live => &[1],
            Self::Untouched => &[0],
            Self::Unknown => &[0, 1],
        }
    }

    /// The generations that may be seen after a power cut.
    pub(crate) fn after_power_cut(self) -> &'static [usize] {
        match self {
            Self::Durable => &[1],
            Self::Untouched => &[0],
            Self::Live | Self::Unknown => &[0, 1],
        }
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Durable => "published and durable",
            Self::Live => "published, durability unknown",
            Self::Untouched => "not published",
            Self::Unknown => "nothing",
        })
    }
}

impl<T, E> From<Result<T, E>> for Claim {
    fn from(result: Result<T, E>) -> Self {
        if result.is_ok() {
            Self::Durable
        } else {
            Self::Unknown
        }
    }
}
