//! Park and Miller's minimal standard generator, for examples that anyone can reproduce anywhere.

use crate::error::{Error, Number};

const MODULUS: u32 = 0x7fff_ffff;
const MULTIPLIER: u32 = 16_807;
// Schrage's split of the modulus: `MODULUS = MULTIPLIER * QUOTIENT + REMAINDER`.
const QUOTIENT: u32 = MODULUS / MULTIPLIER;
const REMAINDER: u32 = MODULUS % MULTIPLIER;

/// The minimal standard generator of Park and Miller (Communications of the ACM, 1988): `x <- 16807 x mod (2^31 - 1)`.
///
/// Ten lines in any language, by Schrage's method in 32-bit integers, so that an example's draws can be checked by
/// hand. It is no good generator: [`Draws`](crate::Draws) is the one to sample with.
///
/// ```
/// let mut draws = sortless::ParkMiller::new(1)?;
/// assert_eq!(draws.next_draw(), 16807.0 / 2147483647.0);
/// assert_eq!(draws.state(), 16807);
/// # Ok::<(), sortless::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ParkMiller(u32);

impl ParkMiller {
    /// Begins at a state in `1..=2^31 - 2`.
    ///
    /// # Errors
    /// [`Error::Parameter`] outside that range; the generator would never leave 0.
    pub fn new(seed: u32) -> Result<Self, Error> {
        if (1..MODULUS).contains(&seed) {
            return Ok(Self(seed));
        }
        Err(Error::Parameter {
            name: "seed",
            value: Number(f64::from(seed)),
            expected: "in 1..=2147483646",
        })
    }

    /// The next state over `2^31 - 1`: strictly inside (0, 1).
    pub fn next_draw(&mut self) -> f64 {
        let ahead = MULTIPLIER * (self.0 % QUOTIENT);
        let back = REMAINDER * (self.0 / QUOTIENT);
        self.0 = if ahead > back { ahead - back } else { ahead + (MODULUS - back) };
        f64::from(self.0) / f64::from(MODULUS)
    }

    /// The last state, from which [`new`](Self::new) goes on.
    pub fn state(&self) -> u32 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_ten_thousandth_state() {
        let mut draws = ParkMiller::new(1).unwrap();
        for _ in 0..10_000 {
            draws.next_draw();
        }
        assert_eq!(draws.state(), 1_043_618_065);
    }

    #[test]
    fn draws_are_the_plain_product_and_strictly_inside() {
        for seed in [1, 2, 16_807, QUOTIENT, QUOTIENT + 1, MODULUS - 2, MODULUS - 1] {
            let mut draws = ParkMiller::new(seed).unwrap();
            for _ in 0..1000 {
                let plain = u64::from(draws.state()) * 16_807 % 0x7fff_ffff;
                let u = draws.next_draw();
                assert_eq!(u64::from(draws.state()), plain);
                assert!(0.0 < u && u < 1.0);
            }
        }
        // The smallest and the largest draw.
        assert!(f64::from(1u32) / f64::from(MODULUS) > 0.0);
        assert!(f64::from(MODULUS - 1) / f64::from(MODULUS) < 1.0);
    }

    #[test]
    fn states_that_never_move_are_refused() {
        for seed in [0, MODULUS, u32::MAX] {
            assert!(ParkMiller::new(seed).is_err());
        }
        assert!(ParkMiller::new(MODULUS - 1).is_ok());
    }
}
