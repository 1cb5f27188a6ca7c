//! The cheapest usable exp and its sum over a row: right to a few parts in a million, and a third of the work of the
//! exact pass.
//!
//! `e^((l - m) / T) = 2^(l c - m c)` with `c = log2(e) / T`: one multiply-add a logit, a degree 4 polynomial, f32 lane
//! sums that are added up in f64 every [`FLUSH`] tokens. Multiply-adds are fused where the instruction set has that,
//! so results differ between levels in their last bits; no decision may depend on them but through a proven bound.

use super::padded;
use super::weight::{ROUND, Scale, pinned};
use crate::element::{Element, LANES};
use crate::level::Level;
use pulp::{Simd, WithSimd};

/// `2^f` on [-1/2, 1/2], highest power first: relative error 2.6e-6 (Remez).
const POLY: [f32; 5] = [0.009_570_102, 0.055_917_86, 0.240_247_44, 0.693_121_8, 0.999_999_3];

/// Exponents below this count as this, so that results are normal: a masked token weighs `2^-126`.
const LEAST: f32 = -126.0;

/// Tokens whose weights are added up in f32 lanes: 128 a lane, so the sums are off by less than `128 * 2^-24`, relative.
pub(crate) const FLUSH: usize = 2048;

/// The scale in base 2 and the constants, in vectors.
#[derive(Clone, Copy)]
pub(crate) struct CheapExp<S: Simd> {
    factor: S::f32s,
    offset: S::f32s,
    least: S::f32s,
    round: S::f32s,
    poly: [S::f32s; POLY.len()],
}

impl<S: Simd> CheapExp<S> {
    /// Factor and offset are each rounded once, from f64. All exponents of a row share the offset's error, so it is one
    /// factor on the whole sum; the factor's error grows with the distance from the maximum.
    #[inline(always)]
    pub fn new(s: S, scale: Scale) -> Self {
        let factor = (core::f64::consts::LOG2_E / f64::from(scale.temperature())) as f32;
        let offset = (f64::from(scale.max()) * f64::from(factor)) as f32;
        let [p0, p1, p2, p3, p4] = POLY;
        Self {
            factor: s.splat_f32s(factor),
            offset: s.splat_f32s(-offset),
            least: pinned(s, LEAST),
            round: pinned(s, ROUND),
            poly: [pinned(s, p0), pinned(s, p1), pinned(s, p2), pinned(s, p3), pinned(s, p4)],
        }
    }

    /// `e^((l - m) / T)`, about, for logits that are not above the maximum.
    #[inline(always)]
    pub fn weights(&self, s: S, logits: S::f32s) -> S::f32s {
        self.exp2(s, s.mul_add_e_f32s(logits, self.factor, self.offset))
    }

    /// `2^t` for `t <= 127`. A NaN becomes something else, not always the same.
    #[inline(always)]
    fn exp2(&self, s: S, t: S::f32s) -> S::f32s {
        let t = s.max_f32s(t, self.least);
        let shifted = s.add_f32s(t, self.round);
        let f = s.sub_f32s(t, s.sub_f32s(shifted, self.round));
        let [p0, p1, p2, p3, p4] = self.poly;
        let p = s.mul_add_e_f32s(s.mul_add_e_f32s(p0, f, p1), f, p2);
        let p = s.mul_add_e_f32s(s.mul_add_e_f32s(p, f, p3), f, p4);
        // The integer stands in the low bits of `shifted`; moved to the exponent's place it multiplies by 2^n.
        let exponent = s.wrapping_dyn_shl_u32s(s.transmute_u32s_f32s(shifted), s.splat_u32s(23));
        s.transmute_f32s_u32s(s.add_u32s(s.transmute_u32s_f32s(p), exponent))
    }
}

/// Adds a group's weights to the lanes.
#[inline(always)]
fn group<E: Element, S: Simd>(
    s: S,
    group: &[E; LANES],
    exp: &CheapExp<S>,
    sums: &mut [f32; LANES],
) {
    let logits = E::widen(group);
    for (&logit, sum) in S::as_simd_f32s(&logits).0.iter().zip(S::as_mut_simd_f32s(sums).0) {
        *sum = s.add_f32s(*sum, exp.weights(s, logit));
    }
}

struct Pass<'a, E> {
    row: &'a [E],
    scale: Scale,
}

impl<E: Element> WithSimd for Pass<'_, E> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) -> f64 {
        let exp = CheapExp::new(s, self.scale);
        let mut total = [0.0f64; LANES];
        let mut sums = [0.0f32; LANES];
        let (groups, tail) = self.row.as_chunks::<LANES>();
        for part in groups.chunks(FLUSH / LANES) {
            for g in part {
                group(s, g, &exp, &mut sums);
            }
            for (total, sum) in total.iter_mut().zip(&mut sums) {
                *total += f64::from(core::mem::take(sum));
            }
        }
        if !tail.is_empty() {
            group(s, &padded(tail), &exp, &mut sums);
        }
        let mut sum = 0.0;
        for (total, rest) in total.iter().zip(sums) {
            sum += total + f64::from(rest);
        }
        sum
    }
}

/// The sum of a checked row's weights, about: the best token weighs 1.
#[inline]
pub(crate) fn cheap_sum<E: Element>(level: Level, row: &[E], scale: Scale) -> f64 {
    level.run(Pass { row, scale })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Map<'a>(&'a mut [f32; LANES]);

    impl WithSimd for Map<'_> {
        type Output = ();

        #[inline(always)]
        fn with_simd<S: Simd>(self, s: S) {
            let exp = CheapExp::new(s, Scale::checked(0.0, 1.0));
            for v in S::as_mut_simd_f32s(self.0).0 {
                *v = exp.exp2(s, *v);
            }
        }
    }

    /// Every 61st float from -126 to 0, and each float near the halves, where the polynomial changes sides.
    #[test]
    fn two_to_the_t_is_within_3e_6_on_every_level() {
        let halves = (0..252u32).flat_map(|i| {
            let at = (0.5 * i as f32).to_bits();
            (at.saturating_sub(8)..at + 8).map(|b| -f32::from_bits(b))
        });
        let every = (0..=126.0f32.to_bits()).step_by(61).map(|b| -f32::from_bits(b));
        let points: Vec<f32> = halves.chain(every).filter(|t| *t >= LEAST).collect();
        for level in Level::available() {
            let mut worst = 0.0f64;
            for chunk in points.chunks(LANES) {
                let mut out = [0.0; LANES];
                out[..chunk.len()].copy_from_slice(chunk);
                level.run(Map(&mut out));
                for (t, v) in chunk.iter().zip(out) {
                    worst = worst.max((f64::from(v) / f64::from(*t).exp2() - 1.0).abs());
                }
            }
            assert!(worst < 3e-6, "{level}: {worst:e}");
        }
    }

    #[test]
    fn a_masked_row_is_still_a_number_and_tails_count_once() {
        let scale = Scale::checked(1.0, 0.5);
        for level in Level::available() {
            for n in [1, 15, 16, 17, 2047, 2048, 2049, 5000] {
                let sum = cheap_sum(level, &vec![1.0f32; n], scale);
                assert!((sum / n as f64 - 1.0).abs() < 5e-6, "{level} {n}: {sum}");
                assert!(cheap_sum(level, &vec![f32::NEG_INFINITY; n], scale) < 1e-30);
            }
        }
    }
}
