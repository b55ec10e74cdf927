//! [`Space`]: all choices that exist, and the number of states they span.

use num_bigint::BigUint;
use num_traits::One;

use crate::{Decision, ExploreError, Path};

/// All choices, sorted by id; an index into this table stands for a choice elsewhere.
#[derive(Debug)]
pub(crate) struct Space {
    choices: Vec<(u64, u32)>,
    total: BigUint,
}

impl Space {
    pub(crate) fn new(arities: impl IntoIterator<Item = (u64, u32)>) -> Result<Self, ExploreError> {
        let mut choices: Vec<_> = arities.into_iter().collect();
        choices.sort_unstable();
        if let Some(&(id, arity)) = choices.iter().find(|(_, arity)| *arity < 2) {
            return Err(ExploreError::NoChoice { id, arity });
        }
        if let Some(pair) = choices.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(ExploreError::DeclaredTwice { id: pair[0].0 });
        }
        let total = product(choices.iter().map(|&(_, arity)| arity));
        Ok(Self { choices, total })
    }

    pub(crate) fn total(&self) -> &BigUint {
        &self.total
    }

    pub(crate) fn id(&self, index: u32) -> u64 {
        self.choices[index as usize].0
    }

    pub(crate) fn arity(&self, index: u32) -> u32 {
        self.choices[index as usize].1
    }

    pub(crate) fn index(&self, id: u64) -> Option<u32> {
        let index = self.choices.binary_search_by_key(&id, |&(id, _)| id).ok()?;
        Some(u32::try_from(index).expect("a space has fewer than 2^32 choices"))
    }

    /// How many states agree with a path and what was decided beyond it.
    ///
    /// The division is exact: the divisor is a product of some of the total's factors.
    pub(crate) fn states(&self, path: &Path, made: &[Decision]) -> BigUint {
        let constrained = path.iter().filter_map(|(id, _)| self.index(id));
        let arities = constrained.map(|index| self.arity(index));
        &self.total / product(arities.chain(made.iter().map(|decision| decision.arity)))
    }

    /// Refuses decisions that contradict the space, the path or each other.
    pub(crate) fn validate(&self, path: &Path, made: &[Decision]) -> Result<(), ExploreError> {
        for &Decision { id, arity, pick } in made {
            let index = self.index(id).ok_or(ExploreError::Unknown { id })?;
            let declared = self.arity(index);
            if declared != arity {
                return Err(ExploreError::Arity {
                    id,
                    declared,
                    reported: arity,
                });
            }
            if pick >= arity {
                return Err(ExploreError::PickOutOfRange { id, arity, pick });
            }
            if path.get(id).is_some() {
                return Err(ExploreError::Constrained { id });
            }
        }
        let mut ids: Vec<u64> = made.iter().map(|decision| decision.id).collect();
        ids.sort_unstable();
        match ids.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(ExploreError::DecidedTwice { id: pair[0] }),
            None => Ok(()),
        }
    }
}

/// Multiplies in machine words for as long as they hold, since one multiplication of a long number
/// per choice is what would show in a profile.
fn product(arities: impl Iterator<Item = u32>) -> BigUint {
    let mut result = BigUint::one();
    let mut word = 1_u64;
    for arity in arities {
        word = word.checked_mul(u64::from(arity)).unwrap_or_else(|| {
            result *= word;
            u64::from(arity)
        });
    }
    result * word
}
