//! The cheapest usable exp and its sum over a row: right to a few parts in a million, and a third of the work of the
//! exact pass.
//!
//! `e^((l - m) / T) = 2^(l c - m c)` with `c = log2(e) / T`: one multiply-add a logit, a degree 4 polynomial, f32 lane
//! sums that are added up in f64 every [`FLUSH`] tokens. Multiply-adds are fused where the instruction set has that,
//! so results differ between levels in their last bits; no decision may depend on them but through a proven bound.

use super::weight::{ONE, ROUND, Scale, pinned};
use super::{BLOCK, blocks_of};
use crate::element::{Element, LANES};
use crate::level::Level;
use pulp::{Simd, WithSimd};

/// `2^f` on [-1/2, 1/2], highest power first: relative error 2.6e-6 (Remez).
const POLY: [f32; 5] = [0.009_570_102, 0.055_917_86, 0.240_247_44, 0.693_121_8, 0.999_999_3];

/// Exponents below this count as this, so that results are normal: a masked token weighs `2^-126`.
const LEAST: f32 = -126.0;

/// Tokens whose weights are added up in f32 lanes: 128 a lane, so the sums are off by less than `128 * 2^-24`, relative.
pub(crate) const FLUSH: usize = 2048;

/// `c = log2(e) / T` and `m c`, each rounded once, from f64. All exponents of a row share the offset's error, so it is one
/// factor on the whole sum; the factor's error grows with the distance from the maximum.
fn base_2(scale: Scale) -> (f32, f32) {
    let factor = (core::f64::consts::LOG2_E / f64::from(scale.temperature())) as f32;
    (factor, (f64::from(scale.max()) * f64::from(factor)) as f32)
}

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
    /// For logits over `unit`, a power of two.
    #[inline(always)]
    pub fn new(s: S, scale: Scale, unit: f32) -> Self {
        let (factor, offset) = base_2(scale);
        let [p0, p1, p2, p3, p4] = POLY;
        Self {
            factor: s.splat_f32s(factor * unit),
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
fn group<const RAW: bool, E: Element, S: Simd>(
    s: S,
    group: &[E; LANES],
    exp: &CheapExp<S>,
    sums: &mut [f32; LANES],
) {
    let logits = if RAW { E::raw(group) } else { E::widen(group) };
    for (&logit, sum) in S::as_simd_f32s(&logits).0.iter().zip(S::as_mut_simd_f32s(sums).0) {
        *sum = s.add_f32s(*sum, exp.weights(s, logit));
    }
}

/// `RAW`: logits are loaded by [`Element::raw`].
struct Pass<'a, const RAW: bool, E, B> {
    row: &'a [E],
    scale: Scale,
    blocks: B,
}

impl<const RAW: bool, E: Element, B: Iterator<Item = usize>> WithSimd for Pass<'_, RAW, E, B> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) -> f64 {
        let Self { row, scale, blocks } = self;
        let exp = CheapExp::new(s, scale, E::UNIT.filter(|_| RAW).unwrap_or(1.0));
        let (full, last) = blocks_of(row);
        let mut total = [0.0f64; LANES];
        let mut sums = [0.0f32; LANES];
        let mut room = FLUSH / BLOCK;
        for b in blocks {
            for g in full.get(b).unwrap_or(&last).as_chunks().0 {
                group::<RAW, E, S>(s, g, &exp, &mut sums);
            }
            room -= 1;
            if room == 0 {
                room = FLUSH / BLOCK;
                for (total, sum) in total.iter_mut().zip(&mut sums) {
                    *total += f64::from(core::mem::take(sum));
                }
            }
        }
        let mut sum = 0.0;
        for (total, rest) in total.iter().zip(sums) {
            sum += total + f64::from(rest);
        }
        sum
    }
}

/// The sum of the weights of some blocks of a checked row, about: the best token weighs 1.
#[inline]
fn sum<E: Element>(
    level: Level,
    row: &[E],
    scale: Scale,
    blocks: impl Iterator<Item = usize>,
) -> f64 {
    if E::UNIT.is_some() && scale.takes_raw() {
        level.run(Pass::<true, E, _> { row, scale, blocks })
    } else {
        level.run(Pass::<false, E, _> { row, scale, blocks })
    }
}

/// The same of all blocks.
#[inline]
pub(crate) fn cheap_sum<E: Element>(level: Level, row: &[E], scale: Scale) -> f64 {
    sum(level, row, scale, 0..row.len().div_ceil(BLOCK))
}

/// Bounds on the exact mass of some blocks of a checked row, both included. `None` where the scale is so extreme that they
/// would be worth nothing, whatever the blocks.
///
/// With `c = factor`, `t* = (l - m) log2(e) / T` and rounding unit `h = 2^-24`, the exponent of a token is off by at most
/// `h (|t*| + |m c| + |t*|)` where the multiply-add is fused (the factor, the offset, the result), and `h (|l c|)` more,
/// at most `h (|t*| + |m c|)`, where it is not: the bound below is for that and so holds for both, whichever a level runs
/// (AVX2, AVX-512 and NEON fuse, scalar and simd128 don't). Tokens with `|t*| > 45` have no mass and weigh less than one
/// unit here. For the others, relative to the token's weight:
///
/// | part | at most |
/// |---|---|
/// | the exponent, `ln 2 * h (3 * 45 + 2 |m c|)` | `5.6e-6 + 8.3e-8 |m c|` |
/// | `2^t`, shown by running every argument | `3e-6` |
/// | [`FLUSH`] / 16 additions in an f32 lane | `7.7e-6` |
/// | the exact weight: `x` is rounded twice, `E` is within 1 ULP | `3.8e-6` |
/// | together | `2.1e-5 + 8.3e-8 |m c|` |
///
/// The terms of second order, the f64 additions and the final rounding drown in what is added to that: the bound used is
/// `2^-15 + 2^-22 |m c|`. Each mass is rounded by half a unit at most.
pub(crate) fn cheap_bounds<E: Element>(
    level: Level,
    row: &[E],
    scale: Scale,
    blocks: impl ExactSizeIterator<Item = usize>,
) -> Option<(u64, u64)> {
    let (factor, offset) = base_2(scale);
    // With such a maximum no `l - m` overflows, which the exact weight would take for -inf. No NaN is in these ranges.
    let no_overflow = scale.max().abs() <= 2f32.powi(100);
    if !no_overflow || !factor.is_normal() || !(-4096.0..=4096.0).contains(&offset) {
        return None;
    }
    let relative = 2f64.powi(-15) + f64::from(offset.abs()) * 2f64.powi(-22);
    let slack = 2.0 * (blocks.len() * BLOCK) as f64;
    let units = sum(level, row, scale, blocks) * ONE as f64;
    // The conversions saturate.
    Some(((units * (1.0 - relative) - slack) as u64, (units * (1.0 + relative) + slack) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Map<'a>(&'a mut [f32; LANES]);

    impl WithSimd for Map<'_> {
        type Output = ();

        #[inline(always)]
        fn with_simd<S: Simd>(self, s: S) {
            let exp = CheapExp::new(s, Scale::checked(0.0, 1.0), 1.0);
            for v in S::as_mut_simd_f32s(self.0).0 {
                *v = exp.exp2(s, *v);
            }
        }
    }

    /// The result depends on the exponent's fraction alone, up to an exact power of two, and the fractions of all
    /// exponents beyond 1.5 are among those between 0.5 and 1.5; so these and the smaller ones are all there are. Below
    /// 2^-30 the result is that of 0.
    #[test]
    fn two_to_the_t_is_within_3e_6_for_every_t_on_every_level() {
        for level in Level::tested() {
            let fast = cfg!(target_arch = "x86_64") && Level::available().any(|l| l == level);
            let stride = if fast { 1 } else { 61 };
            let mut worst = 0.0f64;
            let mut bits = (2f32.powi(-30).to_bits()..=1.5f32.to_bits()).step_by(stride);
            loop {
                let mut t = [0.0; LANES];
                for (t, b) in t.iter_mut().zip(bits.by_ref()) {
                    *t = -f32::from_bits(b);
                }
                if t[0] == 0.0 {
                    break;
                }
                let mut out = t;
                level.run(Map(&mut out));
                for (t, v) in t.into_iter().zip(out) {
                    worst = worst.max((f64::from(v) / libm::exp2(f64::from(t)) - 1.0).abs());
                }
            }
            println!("{level}: relative error at most {worst:e}");
            assert!(worst < 3e-6, "{level}: {worst:e}");
        }
    }

    #[test]
    fn powers_of_two_only_scale() {
        for level in Level::tested() {
            let mut out = [
                -0.3, -1.3, -5.3, -100.3, -0.5, -1.5, -2.5, 0.0, -1.0, -126.0, 0.0, 0.0, 0.0, 0.0,
                0.0, 0.0,
            ];
            level.run(Map(&mut out));
            for (i, (t, of)) in
                [(-1.0, 1.3f32), (-5.0, 5.3), (-100.0, 100.3)].into_iter().enumerate()
            {
                let mut f = [-(of + t as f32); LANES];
                level.run(Map(&mut f));
                assert_eq!(out[i + 1], f[0] * 2f32.powf(t as f32), "{level} {of}");
            }
        }
    }

    #[test]
    fn the_bounds_hold() {
        use crate::kernels::{max, total_mass};
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 40) as f32 / (1u64 << 24) as f32
        };
        let mut tightest = 1.0f64;
        for level in Level::tested() {
            for round in 0..400 {
                let spread = [1e-3, 1.0, 30.0, 300.0][round % 4];
                let shift = [0.0, 20.0, -900.0, 5.0][round / 4 % 4];
                let temperature = [0.05, 0.7, 1.0, 50.0][round / 16 % 4];
                let row: Vec<f32> = (0..1 + round * 37).map(|_| next() * spread + shift).collect();
                let scale = Scale::checked(max(level, &row).unwrap(), temperature);
                let exact = total_mass(level, &row, scale);
                let blocks = 0..row.len().div_ceil(BLOCK);
                if let Some((low, high)) = cheap_bounds(level, &row, scale, blocks) {
                    assert!((low..=high).contains(&exact), "{level} {round}: {low} {exact} {high}");
                    tightest = tightest.min((high - low) as f64 / exact as f64);
                }
            }
        }
        assert!(tightest < 1e-4, "{tightest}");
    }

    #[test]
    fn blocks_are_summed_apart() {
        let row: Vec<f32> = (0..1000).map(|i| -(i as f32) / 128.0).collect();
        let scale = Scale::checked(0.0, 1.0);
        for level in Level::tested() {
            for blocks in [vec![], vec![0], vec![7], vec![1, 3, 6, 7]] {
                let tokens = |b: usize| &row[b * BLOCK..row.len().min((b + 1) * BLOCK)];
                let exact: u64 =
                    blocks.iter().flat_map(|&b| tokens(b)).map(|&l| scale.mass(l)).sum();
                let bounds = cheap_bounds(level, &row, scale, blocks.iter().copied()).unwrap();
                assert!((bounds.0..=bounds.1).contains(&exact), "{level} {blocks:?}");
                assert!((bounds.1 - bounds.0) as f64 <= exact as f64 * 1e-4 + 4096.0);
            }
        }
    }

    #[test]
    fn there_are_no_bounds_at_the_ends_of_the_floats() {
        // `l - m` overflows to -inf, though `l / T - m / T` does not.
        let row = [f32::MAX, f32::MIN];
        for (max, temperature) in [(f32::MAX, f32::MAX), (1.0, f32::MIN_POSITIVE), (1.0, f32::MAX)]
        {
            let bounds = cheap_bounds(Level::best(), &row, Scale::checked(max, temperature), 0..1);
            assert_eq!(bounds, None, "{max} {temperature}");
        }
    }

    #[test]
    fn a_masked_row_is_still_a_number_and_tails_count_once() {
        let scale = Scale::checked(1.0, 0.5);
        for level in Level::tested() {
            for n in [1, 15, 16, 17, 2047, 2048, 2049, 5000] {
                let sum = cheap_sum(level, &vec![1.0f32; n], scale);
                assert!((sum / n as f64 - 1.0).abs() < 5e-6, "{level} {n}: {sum}");
                assert!(cheap_sum(level, &vec![f32::NEG_INFINITY; n], scale) < 1e-30);
            }
        }
    }
}
