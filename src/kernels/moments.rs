//! Exact total mass, first moment and number of tokens with mass: what entropy and typical sampling need.

use super::weight::{Batch, Lanes, ONE, Scale, Take, Weigher, mass};
use crate::element::{Element, LANES};
use crate::level::Level;
use pulp::{Simd, WithSimd};

/// Sums over a row. Integers, so no order of summation can change them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moments {
    /// `S`, the sum of the masses.
    pub mass: u64,
    /// `R`, the sum of `w x 2^43`, each rounded, over the tokens with mass.
    pub first: i64,
    /// How many tokens have mass.
    pub count: u64,
}

impl Moments {
    #[inline(always)]
    pub fn add(&mut self, weight: f32, x: f32) {
        let mass = mass(weight);
        self.mass += mass;
        self.first += r_of(weight, x, mass);
        self.count += u64::from(mass != 0);
    }

    /// `R / S`, the mean exponent argument.
    pub fn mean(&self) -> f64 {
        self.first as f64 / self.mass as f64
    }
}

/// `w x 2^43` rounded once, ties to even: the f64 product is exact. 0 for a token without mass.
#[inline(always)]
pub(crate) fn r_of(weight: f32, x: f32, mass: u64) -> i64 {
    // 1.5 * 2^52, as in `mass`. |w x| < 0.37 wherever there is mass, so the result stays far inside.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    let product = f64::from(weight) * f64::from(x) * ONE as f64;
    let rounded = (product + ROUND).to_bits().wrapping_sub(ROUND.to_bits()) as i64;
    if mass == 0 { 0 } else { rounded }
}

struct Pass<'a, E> {
    row: &'a [E],
    scale: Scale,
}

/// Adds up moments, lane by lane.
#[derive(Default)]
struct Sums {
    masses: [u64; LANES],
    firsts: [i64; LANES],
    counts: [u64; LANES],
}

impl<E, S: Simd> Take<E, S> for Sums {
    #[inline(always)]
    fn take(&mut self, _: S, _: &Batch<E>, x: &Lanes, w: &Lanes) {
        for (x, w) in x.iter().zip(w) {
            for i in 0..LANES {
                let mass = mass(w[i]);
                self.masses[i] += mass;
                self.firsts[i] += r_of(w[i], x[i], mass);
                self.counts[i] += u64::from(mass != 0);
            }
        }
    }
}

impl<E: Element> WithSimd for Pass<'_, E> {
    type Output = Moments;

    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) -> Moments {
        let mut sums = Sums::default();
        Weigher::new(s, self.scale, 0).over::<false, E>(s, self.row, &mut sums);
        Moments {
            mass: sums.masses.iter().sum(),
            first: sums.firsts.iter().sum(),
            count: sums.counts.iter().sum(),
        }
    }
}

/// The moments of a row.
#[inline]
pub(crate) fn moments<E: Element>(level: Level, row: &[E], scale: Scale) -> Moments {
    level.run(Pass { row, scale })
}
