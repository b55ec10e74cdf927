//! [`Coverage`]: how many states of a space were judged, in exact integers.

use std::fmt;

use num_bigint::BigUint;
use num_traits::{ToPrimitive, Zero};

/// States covered, of all states of a space.
///
/// The numbers are exact. Only [`fraction`](Self::fraction) and the logarithms are rounded, and
/// never to a claim that is not true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coverage {
    covered: BigUint,
    total: BigUint,
}

impl Coverage {
    pub(crate) fn new(covered: BigUint, total: BigUint) -> Self {
        Self { covered, total }
    }

    /// States that some run has judged.
    pub fn covered(&self) -> &BigUint {
        &self.covered
    }

    /// All states: the product of all arities, 1 when there is nothing to choose.
    pub fn total(&self) -> &BigUint {
        &self.total
    }

    /// Whether every state is covered, by exact comparison.
    pub fn is_complete(&self) -> bool {
        self.covered == self.total
    }

    /// The share covered, exactly 1.0 only when all is and exactly 0.0 only when nothing is.
    pub fn fraction(&self) -> f64 {
        if self.is_complete() {
            return 1.0;
        }
        if self.covered.is_zero() {
            return 0.0;
        }
        let (covered, covered_exponent) = scientific(&self.covered);
        let (total, total_exponent) = scientific(&self.total);
        let share = covered / total * (covered_exponent - total_exponent).exp2();
        share.clamp(f64::MIN_POSITIVE, 1.0_f64.next_down())
    }

    /// The binary logarithm of the number of states.
    pub fn states_log2(&self) -> f64 {
        let (mantissa, exponent) = scientific(&self.total);
        mantissa.log2() + exponent
    }
}

/// Splits a number into a mantissa of at most 64 bits and a binary exponent, so that no size of
/// space overflows a float.
fn scientific(number: &BigUint) -> (f64, f64) {
    let exponent = number.bits().saturating_sub(64);
    let mantissa = (number >> exponent).to_f64();
    (
        mantissa.unwrap_or(f64::MAX),
        exponent.to_f64().unwrap_or(f64::MAX),
    )
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.total.bits() <= 64 {
            write!(f, "{} of {} states", self.covered, self.total)
        } else {
            write!(
                f,
                "{:.6} of 2^{:.1} states",
                self.fraction(),
                self.states_log2()
            )
        }
    }
}

#[cfg(test)]
#[expect(
    clippy::float_cmp,
    reason = "the exact values 0.0 and 1.0 are the contract"
)]
mod tests {
    use super::*;

    fn check(covered: BigUint, total: BigUint) -> f64 {
        Coverage::new(covered, total).fraction()
    }

    #[test]
    fn extremes_are_exact_and_never_rounded_into() {
        let total = BigUint::from(1_u8) << 100_000_u32;
        assert_eq!(check(total.clone(), total.clone()), 1.0);
        assert_eq!(check(BigUint::zero(), total.clone()), 0.0);
        assert!(check(&total - 1_u8, total.clone()) < 1.0);
        assert!(check(BigUint::from(1_u8), total.clone()) > 0.0);
        assert_eq!(check(&total >> 2_u32, total.clone()), 0.25);
        assert_eq!(check(BigUint::from(1_u8), BigUint::from(3_u8)), 1.0 / 3.0);
    }

    #[test]
    fn logarithms_of_huge_spaces() {
        let space = |total| Coverage::new(BigUint::zero(), total);
        assert_eq!(space(BigUint::from(1_u8)).states_log2(), 0.0);
        assert_eq!(space(BigUint::from(1_u8) << 629_u32).states_log2(), 629.0);
        assert_eq!(space(BigUint::from(8_u8)).to_string(), "0 of 8 states");
        assert_eq!(
            space(BigUint::from(1_u8) << 70_u8).to_string(),
            "0.000000 of 2^70.0 states"
        );
    }
}
