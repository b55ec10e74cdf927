//! One choice as a run sees it: the [`Decision`] it made, and the [`DefaultPick`] that made it.

use std::fmt;
use std::str::FromStr;

/// A pick that a run made for a choice its path did not name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Decision {
    /// Which choice.
    pub id: u64,
    /// How many picks it offers.
    pub arity: u32,
    /// The pick made, below `arity`.
    pub pick: u32,
}

/// The pick for choices that a path does not name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DefaultPick {
    /// Pick 0: one anchor of the bounded search.
    First,
    /// Pick `arity - 1`: the other anchor.
    Last,
    /// A pseudo-random pick.
    ///
    /// It depends on the seed and the choice's identity and not on how many choices were made
    /// before, so that a program that asks in another order is given the same picks.
    Seeded(u64),
}

impl DefaultPick {
    /// The pick for one choice.
    ///
    /// An arity of 0 or 1 offers no choice, and the pick is 0.
    pub fn pick(self, id: u64, arity: u32) -> u32 {
        match self {
            Self::First => 0,
            Self::Last => arity.saturating_sub(1),
            Self::Seeded(seed) => below(mix(mix(seed).wrapping_add(id)), arity),
        }
    }
}

/// Scales a uniform 64-bit number down to `0..bound`, or 0 when `bound` is 0.
///
/// The bias is below `bound / 2^64`, which matters to nobody here, and unlike a library's `range`
/// the result will never change under a recorded seed.
fn below(random: u64, bound: u32) -> u32 {
    let scaled = (u128::from(random) * u128::from(bound)) >> 64;
    u32::try_from(scaled).expect("the scaled number is below a 32-bit bound")
}

/// The finalizer of splitmix64: every input bit reaches every output bit.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// The text is `first`, `last` or `seed:17`, the inverse of [`FromStr`].
impl fmt::Display for DefaultPick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::First => f.write_str("first"),
            Self::Last => f.write_str("last"),
            Self::Seeded(seed) => write!(f, "seed:{seed}"),
        }
    }
}

/// A default pick's text could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no default pick: expected `first`, `last` or `seed:NUMBER`")]
pub struct ParseDefaultPickError(String);

impl FromStr for DefaultPick {
    type Err = ParseDefaultPickError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let seed = text
            .strip_prefix("seed:")
            .and_then(crate::path::canonical_number);
        match (text, seed) {
            ("first", _) => Ok(Self::First),
            ("last", _) => Ok(Self::Last),
            (_, Some(seed)) => Ok(Self::Seeded(seed)),
            (_, None) => Err(ParseDefaultPickError(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_stay_in_range_and_follow_identity() {
        for arity in 2..6 {
            for id in 0..200 {
                assert_eq!(DefaultPick::First.pick(id, arity), 0);
                assert_eq!(DefaultPick::Last.pick(id, arity), arity - 1);
                let pick = DefaultPick::Seeded(7).pick(id, arity);
                assert!(pick < arity);
                assert_eq!(pick, DefaultPick::Seeded(7).pick(id, arity));
            }
        }
    }

    #[test]
    fn seeded_picks_are_pinned() {
        // Recorded tokens rely on these numbers: they may never change.
        let picks: Vec<u32> = (0..16)
            .map(|id| DefaultPick::Seeded(42).pick(id, 4))
            .collect();
        assert_eq!(picks, PINNED);
    }

    const PINNED: [u32; 16] = [1, 3, 1, 1, 2, 3, 3, 3, 3, 2, 2, 0, 0, 0, 3, 0];

    #[test]
    fn text_round_trips() {
        for default in [
            DefaultPick::First,
            DefaultPick::Last,
            DefaultPick::Seeded(u64::MAX),
        ] {
            assert_eq!(default.to_string().parse(), Ok(default));
        }
        for wrong in ["", "seed:", "seed:+1", "seed:01", "First"] {
            assert!(wrong.parse::<DefaultPick>().is_err(), "{wrong}");
        }
    }
}
