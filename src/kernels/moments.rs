//! Exact total mass, first moment and number of tokens with mass: what entropy and typical sampling need.

use super::exp::{HI, HI_BITS, Halves, Sum};
use super::weight::{
    BATCH, Batch, LEAST, Lanes, MASS_BITS, ONE, Scale, Take, Weigher, mass, pinned, vectors,
};
use crate::element::{Element, LANES};
use crate::level::Level;
use core::hint::black_box;
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

/// 1.5 * 2^52, and a unit of a mass in weights times `2^HI_BITS`: adding the product rounds to such units, as in [`r_of`], and
/// leaves their number in the low bits.
const ROUND_FIRST: f64 = 6_755_399_441_055_744.0 / (1u64 << (MASS_BITS - HI_BITS as u32)) as f64;

/// Adds up moments of weights times `2^HI_BITS`.
struct Sums<S: Simd> {
    halves: Halves<S>,
    no_mass: S::f32s,
    mass: Sum<S>,
    /// How many tokens with mass each lane saw.
    count: S::u32s,
    /// Sums of bits, to each of which [`ROUND_FIRST`] added its own.
    firsts: [u64; LANES],
    groups: u64,
}

impl<E, S: Simd> Take<E, S> for Sums<S> {
    #[inline(always)]
    fn take(&mut self, s: S, _: &Batch<E>, x: &Lanes, w: &Lanes) {
        let (mut sum, mut count) = (self.mass, self.count);
        let zero = s.splat_f32s(0.0);
        // The arguments of tokens with mass; 0 for others, so that the product is.
        let mut with_mass = [[0.0; LANES]; BATCH];
        let out = S::as_mut_simd_f32s(with_mass.as_flattened_mut()).0.iter_mut();
        for ((out, &x), &t) in out.zip(vectors::<S>(x)).zip(vectors::<S>(w)) {
            let has_mass = s.greater_than_f32s(t, self.no_mass);
            *out = s.select_f32s(has_mass, x, zero);
            let one = s.select_u32s(has_mass, s.splat_u32s(1), s.splat_u32s(0));
            count = s.add_u32s(count, one);
            sum.add(s, self.halves.of(s, t));
        }
        if sum.is_full() {
            sum.make_room(s);
        }
        (self.mass, self.count) = (sum, count);
        for group in with_mass.iter().zip(w) {
            // Left alone, the compiler makes a vector out of one lane of several groups, piece by piece.
            let (x, w) = black_box(group);
            for i in 0..LANES {
                let product = f64::from(w[i]) * f64::from(x[i]) + ROUND_FIRST;
                self.firsts[i] = self.firsts[i].wrapping_add(product.to_bits());
            }
        }
        self.groups += BATCH as u64;
    }
}

impl<E: Element> WithSimd for Pass<'_, E> {
    type Output = Moments;

    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) -> Moments {
        let mut sums = Sums {
            halves: Halves::new(s),
            no_mass: pinned(s, LEAST * HI),
            mass: Sum::new(s),
            count: s.splat_u32s(0),
            firsts: [0; LANES],
            groups: 0,
        };
        Weigher::new(s, self.scale, HI_BITS).over::<false, E>(s, self.row, &mut sums);
        let constants = ROUND_FIRST.to_bits().wrapping_mul(sums.groups);
        let mut first = 0i64;
        for bits in sums.firsts {
            first = first.wrapping_add(bits.wrapping_sub(constants) as i64);
        }
        Moments { mass: sums.mass.total(s), first, count: super::equal::total::<S>(sums.count) }
    }
}

/// The moments of a row.
#[inline]
pub(crate) fn moments<E: Element>(level: Level, row: &[E], scale: Scale) -> Moments {
    level.run(Pass { row, scale })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_those_of_a_plain_loop() {
        let mut row: Vec<f32> =
            (0..150_000).map(|i| ((i * 7919) % 100_003) as f32 * -4e-4).collect();
        row[5] = f32::NEG_INFINITY;
        row[77] = f32::MIN;
        for level in Level::tested() {
            for temperature in [0.7, 1.0, 1e-30, 1e30] {
                let scale = Scale::checked(0.0, temperature);
                for n in [1, 5, 127, 128, 129, 2000, row.len()] {
                    let mut want = Moments::default();
                    for &l in &row[..n] {
                        want.add(scale.weight(l), scale.argument(l));
                    }
                    assert_eq!(moments(level, &row[..n], scale), want, "{level} {n} {temperature}");
                }
            }
        }
    }
}
