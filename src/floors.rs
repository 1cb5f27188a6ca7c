//! The least that a pass over a row can cost: what every benchmark measures a sampler in.
//!
//! Not a part of the interface. The benchmarks and the command-line tool share it.

use crate::element::Element;
use crate::kernels::{Scale, cheap_sum, scan, total_mass};
use crate::level::Level;
use pulp::{Simd, WithSimd};

/// Accumulators of the bare maximum, a vector each.
const ACCUMULATORS: usize = 8;

struct Read<'a>(&'a [f32]);

impl WithSimd for Read<'_> {
    type Output = f32;

    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) -> f32 {
        let mut acc = [s.splat_f32s(f32::NEG_INFINITY); ACCUMULATORS];
        let (vectors, tail) = S::as_simd_f32s(self.0);
        let (parts, rest) = vectors.as_chunks::<ACCUMULATORS>();
        for part in parts {
            for (acc, &v) in acc.iter_mut().zip(part) {
                *acc = s.max_f32s(v, *acc);
            }
        }
        for &v in rest {
            acc[0] = s.max_f32s(v, acc[0]);
        }
        let mut best = acc[0];
        for &v in &acc[1..] {
            best = s.max_f32s(v, best);
        }
        tail.iter().fold(s.reduce_max_f32s(best), |a, &b| a.max(b))
    }
}

/// `floor/read`: the bare maximum of a row. No check, no index.
pub fn read(level: Level, row: &[f32]) -> f32 {
    level.run(Read(row))
}

/// `floor/exp`: the bare maximum, then the cheapest usable sum of `e^((l - m) / T)`, right to about 5e-6. Nothing is
/// stored. A row or temperature that no sampler would take gives nonsense.
pub fn exp(level: Level, row: &[f32], temperature: f32) -> f64 {
    let max = read(level, row);
    cheap_sum(level, row, Scale::checked(max, temperature))
}

/// The exact pass as samplers run it: a scan for the maximum, the block maxima and faults, then the exact total mass. For a
/// row and a temperature that a sampler would take.
pub fn exact<E: Element>(level: Level, row: &[E], temperature: f32) -> u64 {
    let max = scan(level, row, &mut []).max;
    total_mass(level, row, Scale::checked(max, temperature))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::exp_mass;

    #[test]
    fn the_floors_do_what_they_say() {
        let mut state = 1u32;
        let row: Vec<f32> = (0..10_007)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 8) as f32 * 2f32.powi(-20) - 8.0
            })
            .collect();
        let max = row.iter().copied().fold(f32::MIN, f32::max);
        for level in Level::tested() {
            for n in [1, 7, 64, 1000, row.len()] {
                let want = row[..n].iter().copied().fold(f32::MIN, f32::max);
                assert_eq!(read(level, &row[..n]), want, "{level} {n}");
            }
            for temperature in [0.3, 1.0, 4.0] {
                let scale = Scale::checked(max, temperature);
                let mass = exp_mass(level, &row, scale).unwrap() as f64;
                assert_eq!(super::exact(level, &row, temperature) as f64, mass, "{level}");
                let ratio = exp(level, &row, temperature) * crate::kernels::ONE as f64 / mass;
                assert!((ratio - 1.0).abs() < 5e-6, "{level}: {ratio}");
            }
        }
    }
}
