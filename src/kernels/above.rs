//! The exact total mass of a row, with numbers and masses of the tokens above logits and with moments, in one pass.

use super::exp::{HI_BITS, Halves, Part, Sum};
use super::moments::{Firsts, Moments};
use super::weight::{BATCH, Batch, Lanes, Scale, Take, Weigher, vectors};
use crate::element::{Element, LANES};
use crate::level::Level;
use pulp::{Simd, WithSimd};

/// `N` logits to look above; with moments or without.
struct Pass<'a, E, const N: usize, const MOMENTS: bool> {
    row: &'a [E],
    scale: Scale,
    ends: [f32; N],
}

struct Above<S: Simd, const N: usize, const MOMENTS: bool> {
    halves: Halves<S>,
    /// The keys of the logits to look above.
    ends: [S::f32s; N],
    total: Sum<S>,
    above: [Part<S>; N],
    firsts: Firsts<S>,
}

impl<E: Element, S: Simd, const N: usize, const MOMENTS: bool> Take<E, S> for Above<S, N, MOMENTS> {
    #[inline(always)]
    fn take(&mut self, s: S, logits: &Batch<E>, x: &Lanes, w: &Lanes) {
        let mut total = self.total;
        let (mut hi, mut lo) = ([[0u32; LANES]; BATCH], [[0u32; LANES]; BATCH]);
        let parts = S::as_mut_simd_u32s(hi.as_flattened_mut()).0.iter_mut();
        let parts = parts.zip(S::as_mut_simd_u32s(lo.as_flattened_mut()).0);
        for ((hi, lo), &t) in parts.zip(vectors::<S>(w)) {
            (*hi, *lo) = self.halves.of(s, t);
            total.add(s, (*hi, *lo));
        }
        // One after the other: all sums together are more than there are registers.
        for (above, &end) in self.above.iter_mut().zip(&self.ends) {
            let mut part = *above;
            for (logits, (hi, lo)) in logits.iter().zip(hi.iter().zip(&lo)) {
                let keys = E::keys(logits);
                let halves = S::as_simd_u32s(hi).0.iter().zip(S::as_simd_u32s(lo).0);
                for (&key, (&hi, &lo)) in S::as_simd_f32s(&keys).0.iter().zip(halves) {
                    part.add(s, s.greater_than_or_equal_f32s(key, end), (hi, lo));
                }
            }
            *above = part;
        }
        if total.is_full() {
            total.make_room(s);
            for above in &mut self.above {
                above.make_room(s);
            }
        }
        self.total = total;
        if MOMENTS {
            self.firsts.add(s, x, w);
        }
    }
}

impl<E: Element, const N: usize, const MOMENTS: bool> WithSimd for Pass<'_, E, N, MOMENTS> {
    /// Unless `MOMENTS`, the moments are the mass alone: the others are 0.
    type Output = (Moments, [(u64, u64); N]);

    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) -> Self::Output {
        let mut above = Above::<S, N, MOMENTS> {
            halves: Halves::new(s),
            ends: self.ends.map(
                #[inline(always)]
                |end| s.splat_f32s(E::key_at_least(end)),
            ),
            total: Sum::new(s),
            above: [Part::new(s); N],
            firsts: Firsts::new(s),
        };
        Weigher::new(s, self.scale, HI_BITS).over::<false, E>(s, self.row, &mut above);
        let mut found = [(0, 0); N];
        for (found, above) in found.iter_mut().zip(&above.above) {
            *found = above.total();
        }
        (above.firsts.moments(above.total.total(s)), found)
    }
}

/// The exact total mass of a row, and the number and the mass of the tokens at or above each of `ends`.
#[inline]
pub(crate) fn masses_above<E: Element, const N: usize>(
    level: Level,
    row: &[E],
    scale: Scale,
    ends: [f32; N],
) -> (u64, [(u64, u64); N]) {
    let (moments, above) = level.run(Pass::<E, N, false> { row, scale, ends });
    (moments.mass, above)
}

/// The same with the moments.
#[inline]
pub(crate) fn moments_above<E: Element, const N: usize>(
    level: Level,
    row: &[E],
    scale: Scale,
    ends: [f32; N],
) -> (Moments, [(u64, u64); N]) {
    level.run(Pass::<E, N, true> { row, scale, ends })
}

/// The moments of a row.
#[inline]
pub(crate) fn moments<E: Element>(level: Level, row: &[E], scale: Scale) -> Moments {
    moments_above(level, row, scale, []).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_those_of_a_plain_loop() {
        let row: Vec<f32> = (0..150_000).map(|i| ((i * 7919) % 1009) as f32 * 0.01 - 6.0).collect();
        for level in Level::tested() {
            for n in [1, 127, 128, 129, 2000, row.len()] {
                let row = &row[..n];
                let max = row.iter().copied().fold(f32::MIN, f32::max);
                let scale = Scale::checked(max, 0.7);
                let mut moments = Moments::default();
                for &l in row {
                    moments.add(scale.weight(l), scale.argument(l));
                }
                assert_eq!(super::moments(level, row, scale), moments, "{level} {n}");
                for ends in [[max, f32::MIN], [-1.0, 2.5], [f32::INFINITY, 0.0]] {
                    let above = |from: f32| {
                        let masses = row.iter().filter(|l| **l >= from).map(|l| scale.mass(*l));
                        (masses.clone().count() as u64, masses.sum::<u64>())
                    };
                    let found = masses_above(level, row, scale, ends);
                    let want = (above(f32::MIN).1, ends.map(above));
                    assert_eq!(found, want, "{level} {n} {ends:?}");
                    let [first, second] = ends;
                    let four = [first, 0.5, second, -2.5];
                    let want = four.map(above);
                    let found = masses_above(level, row, scale, four);
                    assert_eq!(found, (moments.mass, want), "{level} {n} {four:?}");
                    let found = moments_above(level, row, scale, four);
                    assert_eq!(found, (moments, want), "{level} {n} {four:?}");
                }
            }
        }
    }

    #[test]
    fn moments_are_those_of_a_plain_loop_at_every_scale() {
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
