//! Exact total mass, first moment and number of tokens with mass: what entropy and typical sampling need.

use super::weight::{Batch, CUT_OFF, LEAST, Lanes, Scale, Take, Weigher, mass, pinned};
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
fn r_of(weight: f32, x: f32, mass: u64) -> i64 {
    let rounded = units(f64::from(weight) * f64::from(x)).wrapping_sub(UNITS.to_bits()) as i64;
    if mass == 0 { 0 } else { rounded }
}

/// `1.5 * 2^9`: the last bit of a number of its size is worth `2^-43`, so that adding it rounds to a whole number of these,
/// ties to even, which then stands in the low bits.
const UNITS: f64 = 768.0;

/// A small number in units of `2^-43`, with the bits of [`UNITS`] added.
#[inline(always)]
fn units(value: f64) -> u64 {
    (value + UNITS).to_bits()
}

struct Pass<'a, E> {
    row: &'a [E],
    scale: Scale,
}

/// Adds up moments, lane by lane.
struct Sums<S: Simd> {
    least: S::f32s,
    cut_off: S::f32s,
    masses: [u64; LANES],
    firsts: [u64; LANES],
    counts: [u32; LANES],
    groups: u64,
}

impl<E, S: Simd> Take<E, S> for Sums<S> {
    #[inline(always)]
    fn take(&mut self, s: S, _: &Batch<E>, x: &Lanes, w: &Lanes) {
        let (zero, one) = (s.splat_f32s(0.0), s.splat_u32s(1));
        for (x, w) in x.iter().zip(w) {
            // Without mass: no weight, so that both of its units are 0. No product with -inf then, either.
            let (mut xs, mut ws) = ([0.0f32; LANES], [0.0f32; LANES]);
            let from = S::as_simd_f32s(x).0.iter().zip(S::as_simd_f32s(w).0);
            let to = S::as_mut_simd_f32s(&mut xs).0.iter_mut().zip(S::as_mut_simd_f32s(&mut ws).0);
            let counts = S::as_mut_simd_u32s(&mut self.counts).0;
            for (((&x, &w), (to_x, to_w)), count) in from.zip(to).zip(counts) {
                let has_mass = s.greater_than_f32s(w, self.least);
                *to_x = s.max_f32s(x, self.cut_off);
                *to_w = s.select_f32s(has_mass, w, zero);
                *count = s.select_u32s(has_mass, s.add_u32s(*count, one), *count);
            }
            for i in 0..LANES {
                let w = f64::from(ws[i]);
                self.masses[i] = self.masses[i].wrapping_add(units(w));
                self.firsts[i] = self.firsts[i].wrapping_add(units(w * f64::from(xs[i])));
            }
        }
        self.groups += w.len() as u64;
    }
}

impl<E: Element> WithSimd for Pass<'_, E> {
    type Output = Moments;

    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) -> Moments {
        let mut sums = Sums::<S> {
            least: pinned(s, LEAST),
            cut_off: pinned(s, CUT_OFF),
            masses: [0; LANES],
            firsts: [0; LANES],
            counts: [0; LANES],
            groups: 0,
        };
        Weigher::new(s, self.scale, 0).over::<false, E>(s, self.row, &mut sums);
        // Each term added the bits of the constant, too.
        let constant = UNITS.to_bits().wrapping_mul(sums.groups * LANES as u64);
        let total = |lanes: &[u64; LANES]| {
            lanes.iter().fold(0u64, |sum, lane| sum.wrapping_add(*lane)).wrapping_sub(constant)
        };
        Moments {
            mass: total(&sums.masses),
            first: total(&sums.firsts) as i64,
            count: sums.counts.iter().map(|&n| u64::from(n)).sum(),
        }
    }
}

/// The moments of a row.
#[inline]
pub(crate) fn moments<E: Element>(level: Level, row: &[E], scale: Scale) -> Moments {
    level.run(Pass { row, scale })
}
