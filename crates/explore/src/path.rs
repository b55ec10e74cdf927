//! [`Path`]: picks fixed before a run begins, and their text.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::Decision;

/// A sorted map from choice to pick: the constraints a run is given.
///
/// Its text is `17=1,40=0` in ascending order of ids, and `-` when nothing is fixed. `Display` and
/// `FromStr` are inverses: one path has one text and only that text is accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path(BTreeMap<u64, u32>);

impl Path {
    /// The path that fixes nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// The pick fixed for a choice.
    pub fn get(&self, id: u64) -> Option<u32> {
        self.0.get(&id).copied()
    }

    /// Fixes a pick and returns the one fixed before.
    pub fn insert(&mut self, id: u64, pick: u32) -> Option<u32> {
        self.0.insert(id, pick)
    }

    /// Every choice that is fixed, in ascending order of ids.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u64, u32)> + '_ {
        self.0.iter().map(|(&id, &pick)| (id, pick))
    }

    /// How many choices are fixed.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing is fixed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// This path and what a run decided beyond it: the path that repeats that run under any
    /// default.
    #[must_use]
    pub fn extended(&self, made: &[Decision]) -> Self {
        let mut path = self.clone();
        path.0
            .extend(made.iter().map(|decision| (decision.id, decision.pick)));
        path
    }
}

impl FromIterator<(u64, u32)> for Path {
    fn from_iter<I: IntoIterator<Item = (u64, u32)>>(picks: I) -> Self {
        Self(picks.into_iter().collect())
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("-");
        }
        for (position, (id, pick)) in self.0.iter().enumerate() {
            let separator = if position == 0 { "" } else { "," };
            write!(f, "{separator}{id}={pick}")?;
        }
        Ok(())
    }
}

/// A path's text could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParsePathError {
    /// A part between two commas is no `id=pick` of plain decimal numbers.
    #[error("`{0}` is no pick: expected `id=pick`, or `-` for the empty path")]
    Pick(String),
    /// Ids have to ascend strictly, so that one path has one text.
    #[error("choice {0} is out of order: ids have to ascend")]
    Order(u64),
}

impl FromStr for Path {
    type Err = ParsePathError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut picks = BTreeMap::new();
        if text == "-" {
            return Ok(Self(picks));
        }
        for part in text.split(',') {
            let (id, pick) = parse_pick(part).ok_or_else(|| ParsePathError::Pick(part.into()))?;
            if picks.last_key_value().is_some_and(|(&last, _)| last >= id) {
                return Err(ParsePathError::Order(id));
            }
            picks.insert(id, pick);
        }
        Ok(Self(picks))
    }
}

fn parse_pick(part: &str) -> Option<(u64, u32)> {
    let (id, pick) = part.split_once('=')?;
    Some((canonical_number(id)?, canonical_number(pick)?))
}

/// Reads a decimal number that is written the way it would be printed: no sign, no leading zeros.
pub(crate) fn canonical_number<N: FromStr>(text: &str) -> Option<N> {
    let digits_only = text.bytes().all(|byte| byte.is_ascii_digit());
    let leading_zero = text.len() > 1 && text.starts_with('0');
    if digits_only && !leading_zero {
        text.parse().ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_paths() {
        assert_eq!(Path::new().to_string(), "-");
        assert_eq!(Path::from_iter([(40, 0), (17, 1)]).to_string(), "17=1,40=0");
    }

    #[test]
    fn wrong_text_is_refused() {
        for wrong in [
            "", "1", "1=", "=1", "1=1,", ",1=1", "1=-1", "+1=1", "01=1", "1=1 ", "-,1=1",
        ] {
            assert!(
                matches!(wrong.parse::<Path>(), Err(ParsePathError::Pick(_))),
                "{wrong}"
            );
        }
        for wrong in ["2=0,1=0", "1=0,1=0"] {
            assert_eq!(
                wrong.parse::<Path>(),
                Err(ParsePathError::Order(1)),
                "{wrong}"
            );
        }
    }

    #[test]
    fn a_decision_extends_a_path() {
        let made = [Decision {
            id: 3,
            arity: 2,
            pick: 1,
        }];
        assert_eq!(
            Path::from_iter([(9, 0)]).extended(&made).to_string(),
            "3=1,9=0"
        );
    }
}
