//! sortless's two floors written with AVX2 intrinsics, to see what its portable vectors cost.

use std::arch::x86_64::*;

/// The lanes of a vector.
const LANES: usize = 8;
/// `2^f` on [-1/2, 1/2], highest power first: the floors' polynomial.
const POLY: [f32; 5] = [0.009_570_102, 0.055_917_86, 0.240_247_44, 0.693_121_8, 0.999_999_3];
/// Adding it rounds to an integer that stands in the low bits.
const ROUND: f32 = 12_582_912.0;
/// Tokens that are added up in f32.
const FLUSH: usize = 2048;

/// Proof that this processor has AVX2 and FMA.
#[derive(Clone, Copy)]
pub struct Passes(());

impl Passes {
    pub fn new() -> Option<Self> {
        let there = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
        there.then_some(Self(()))
    }

    /// The bare maximum.
    pub fn read(self, row: &[f32]) -> f32 {
        // SAFETY: the function asks for AVX2 and FMA alone, and `self` is made only where both were detected.
        unsafe { read(row) }
    }

    /// The maximum, then the sum of `e^((l - m) / T)`.
    pub fn exp(self, row: &[f32], temperature: f32) -> f64 {
        // SAFETY: as above.
        unsafe { exp(row, temperature) }
    }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn load(lanes: &[f32; LANES]) -> __m256 {
    // SAFETY: the pointer is that of 8 f32s, which is what an unaligned load reads.
    unsafe { _mm256_loadu_ps(lanes.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn lanes(v: __m256) -> [f32; LANES] {
    let mut lanes = [0.0; LANES];
    // SAFETY: the pointer is that of 8 f32s, which is what an unaligned store writes.
    unsafe { _mm256_storeu_ps(lanes.as_mut_ptr(), v) };
    lanes
}

#[target_feature(enable = "avx2,fma")]
fn read(row: &[f32]) -> f32 {
    const ACCUMULATORS: usize = 8;
    let mut best = [_mm256_set1_ps(f32::NEG_INFINITY); ACCUMULATORS];
    let (vectors, tail) = row.as_chunks::<LANES>();
    let (parts, rest) = vectors.as_chunks::<ACCUMULATORS>();
    for part in parts {
        for (best, v) in best.iter_mut().zip(part) {
            *best = _mm256_max_ps(load(v), *best);
        }
    }
    for v in rest {
        best[0] = _mm256_max_ps(load(v), best[0]);
    }
    let mut max = best[0];
    for &best in &best[1..] {
        max = _mm256_max_ps(best, max);
    }
    let max = lanes(max).into_iter().fold(f32::NEG_INFINITY, f32::max);
    tail.iter().copied().fold(max, f32::max)
}

#[target_feature(enable = "avx2,fma")]
fn exp(row: &[f32], temperature: f32) -> f64 {
    const ACCUMULATORS: usize = 4;
    let max = read(row);
    let factor = (std::f64::consts::LOG2_E / f64::from(temperature)) as f32;
    let offset = _mm256_set1_ps(-(f64::from(max) * f64::from(factor)) as f32);
    let factor = _mm256_set1_ps(factor);
    let mut total = 0.0;
    for part in row.chunks(FLUSH) {
        let mut sums = [_mm256_setzero_ps(); ACCUMULATORS];
        let (vectors, tail) = part.as_chunks::<LANES>();
        let (groups, rest) = vectors.as_chunks::<ACCUMULATORS>();
        for group in groups {
            for (sum, v) in sums.iter_mut().zip(group) {
                *sum = _mm256_add_ps(*sum, exp2(_mm256_fmadd_ps(load(v), factor, offset)));
            }
        }
        for v in rest {
            let weights = exp2(_mm256_fmadd_ps(load(v), factor, offset));
            sums[0] = _mm256_add_ps(sums[0], weights);
        }
        if !tail.is_empty() {
            let mut padded = [f32::NEG_INFINITY; LANES];
            padded[..tail.len()].copy_from_slice(tail);
            let weights = exp2(_mm256_fmadd_ps(load(&padded), factor, offset));
            sums[0] = _mm256_add_ps(sums[0], weights);
        }
        let [a, b, c, d] = sums;
        let sum = _mm256_add_ps(_mm256_add_ps(a, b), _mm256_add_ps(c, d));
        total += lanes(sum).into_iter().map(f64::from).sum::<f64>();
    }
    total
}

/// `2^t` for `t <= 0`; below -126 it counts as that.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn exp2(t: __m256) -> __m256 {
    let round = _mm256_set1_ps(ROUND);
    let t = _mm256_max_ps(t, _mm256_set1_ps(-126.0));
    let shifted = _mm256_add_ps(t, round);
    let f = _mm256_sub_ps(t, _mm256_sub_ps(shifted, round));
    let mut p = _mm256_set1_ps(POLY[0]);
    for c in &POLY[1..] {
        p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(*c));
    }
    let exponent = _mm256_slli_epi32::<23>(_mm256_castps_si256(shifted));
    _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), exponent))
}
