//! First moment and number of tokens with mass: what entropy and typical sampling need beside the exact total.

use super::exp::{HI, HI_BITS};
use super::weight::{BATCH, LEAST, Lanes, MASS_BITS, ONE, ROUND_F64, mass, pinned, vectors};
use crate::element::LANES;
use pulp::Simd;

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
    // |w x| < 0.37 wherever there is mass, so the result stays far inside.
    let product = f64::from(weight) * f64::from(x) * ONE as f64;
    let rounded = (product + ROUND_F64).to_bits().wrapping_sub(ROUND_F64.to_bits()) as i64;
    if mass == 0 { 0 } else { rounded }
}

/// [`ROUND_F64`], and a unit of a mass in weights times `2^HI_BITS`: adding the product rounds to such units, as in [`r_of`], and
/// leaves their number in the low bits.
const ROUND_FIRST: f64 = ROUND_F64 / (1u64 << (MASS_BITS - HI_BITS as u32)) as f64;

/// A sum of `r_i`, and the number of tokens with mass.
#[derive(Clone, Copy)]
pub(super) struct Firsts<S: Simd> {
    no_mass: S::f32s,
    /// How many tokens with mass each lane saw.
    count: S::u32s,
    /// Sums of bits, to each of which [`ROUND_FIRST`] added its own.
    sums: [u64; LANES],
    groups: u64,
}

impl<S: Simd> Firsts<S> {
    #[inline(always)]
    pub fn new(s: S) -> Self {
        let (no_mass, count) = (pinned(s, LEAST * HI), s.splat_u32s(0));
        Self { no_mass, count, sums: [0; LANES], groups: 0 }
    }

    /// Adds a batch of exponent arguments, and of weights times `2^HI_BITS`.
    #[inline(always)]
    pub fn add(&mut self, s: S, x: &Lanes, w: &Lanes) {
        let mut count = self.count;
        let zero = s.splat_f32s(0.0);
        // The arguments of tokens with mass; 0 for others, so that the product is.
        let mut with_mass = [[0.0; LANES]; BATCH];
        let out = S::as_mut_simd_f32s(with_mass.as_flattened_mut()).0.iter_mut();
        for ((out, &x), &t) in out.zip(vectors::<S>(x)).zip(vectors::<S>(w)) {
            let has_mass = s.greater_than_f32s(t, self.no_mass);
            *out = s.select_f32s(has_mass, x, zero);
            let one = s.select_u32s(has_mass, s.splat_u32s(1), s.splat_u32s(0));
            count = s.add_u32s(count, one);
        }
        let (mut sums, round) = (self.sums, s.splat_f64s(ROUND_FIRST));
        for (x, w) in with_mass.iter().zip(w) {
            let (mut wide_x, mut wide_w) = ([0.0; LANES], [0.0; LANES]);
            for i in 0..LANES {
                (wide_x[i], wide_w[i]) = (f64::from(x[i]), f64::from(w[i]));
            }
            let (xs, ws) = (S::as_simd_f64s(&wide_x).0, S::as_simd_f64s(&wide_w).0);
            for (sum, (&x, &w)) in
                S::as_mut_simd_u64s(&mut sums).0.iter_mut().zip(xs.iter().zip(ws))
            {
                let rounded = s.add_f64s(s.mul_f64s(x, w), round);
                *sum = s.add_u64s(*sum, s.transmute_u64s_f64s(rounded));
            }
        }
        (self.count, self.sums) = (count, sums);
        self.groups += BATCH as u64;
    }

    /// The moments of tokens with this mass.
    #[inline(always)]
    pub fn moments(&self, mass: u64) -> Moments {
        let constants = ROUND_FIRST.to_bits().wrapping_mul(self.groups);
        let mut first = 0i64;
        for bits in self.sums {
            first = first.wrapping_add(bits.wrapping_sub(constants) as i64);
        }
        Moments { mass, first, count: super::equal::total::<S>(self.count) }
    }
}
