//! Numbers and exact masses of the tokens above logits, with the exact total, in one pass.

use super::exp::{HI_BITS, Halves, Part, Sum};
use super::weight::{Batch, Lanes, Scale, Take, Weigher};
use crate::element::Element;
use crate::level::Level;
use pulp::{Simd, WithSimd};

/// Logits that one pass can look above.
pub(crate) const ENDS: usize = 2;

struct Pass<'a, E> {
    row: &'a [E],
    scale: Scale,
    ends: [f32; ENDS],
}

struct Above<S: Simd> {
    halves: Halves<S>,
    /// The keys of the logits to look above.
    ends: [S::f32s; ENDS],
    total: Sum<S>,
    above: [Part<S>; ENDS],
}

impl<E: Element, S: Simd> Take<E, S> for Above<S> {
    #[inline(always)]
    fn take(&mut self, s: S, logits: &Batch<E>, _: &Lanes, w: &Lanes) {
        let (mut total, mut above) = (self.total, self.above);
        for (logits, w) in logits.iter().zip(w) {
            let keys = E::keys(logits);
            for (&key, &t) in S::as_simd_f32s(&keys).0.iter().zip(S::as_simd_f32s(w).0) {
                let halves = self.halves.of(s, t);
                total.add(s, halves);
                for (above, &end) in above.iter_mut().zip(&self.ends) {
                    above.add(s, s.greater_than_or_equal_f32s(key, end), halves);
                }
            }
        }
        if total.is_full() {
            total.make_room(s);
            for above in &mut above {
                above.make_room(s);
            }
        }
        (self.total, self.above) = (total, above);
    }
}

impl<E: Element> WithSimd for Pass<'_, E> {
    type Output = (u64, [(u64, u64); ENDS]);

    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) -> Self::Output {
        let mut above = Above {
            halves: Halves::new(s),
            ends: self.ends.map(
                #[inline(always)]
                |end| s.splat_f32s(E::key_at_least(end)),
            ),
            total: Sum::new(s),
            above: [Part::new(s); ENDS],
        };
        Weigher::new(s, self.scale, HI_BITS).over::<false, E>(s, self.row, &mut above);
        let mut found = [(0, 0); ENDS];
        for (found, above) in found.iter_mut().zip(&above.above) {
            *found = above.total();
        }
        (above.total.total(s), found)
    }
}

/// The exact total mass of a row, and the number and the mass of the tokens at or above each of `ends`.
#[inline]
pub(crate) fn masses_above<E: Element>(
    level: Level,
    row: &[E],
    scale: Scale,
    ends: [f32; ENDS],
) -> (u64, [(u64, u64); ENDS]) {
    level.run(Pass { row, scale, ends })
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
                for ends in [[max, f32::MIN], [-1.0, 2.5], [f32::INFINITY, 0.0]] {
                    let above = |from: f32| {
                        let masses = row.iter().filter(|l| **l >= from).map(|l| scale.mass(*l));
                        (masses.clone().count() as u64, masses.sum::<u64>())
                    };
                    let found = masses_above(level, row, scale, ends);
                    let want = (above(f32::MIN).1, ends.map(above));
                    assert_eq!(found, want, "{level} {n} {ends:?}");
                }
            }
        }
    }
}
