//! A value that about a given number of others reach.

use crate::element::LANES;
use crate::level::Level;
use pulp::{Simd, WithSimd};

struct Pass<'a> {
    values: &'a [f32],
    want: usize,
    high: f32,
}

/// How many values are at least `least`.
#[inline(always)]
fn count<S: Simd>(s: S, values: &[f32], least: f32) -> usize {
    let (vectors, tail) = S::as_simd_f32s(values);
    let (limit, one) = (s.splat_f32s(least), s.splat_u32s(1));
    let mut reaching = s.splat_u32s(0);
    for &v in vectors {
        let more = s.add_u32s(reaching, one);
        reaching = s.select_u32s(s.greater_than_or_equal_f32s(v, limit), more, reaching);
    }
    let mut lanes = [0u32; LANES];
    S::as_mut_simd_u32s(&mut lanes).0[0] = reaching;
    let mut total = 0;
    for n in lanes {
        total += n as usize;
    }
    for v in tail {
        total += usize::from(*v >= least);
    }
    total
}

impl WithSimd for Pass<'_> {
    type Output = f32;

    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) -> f32 {
        let Self { values, want, high } = self;
        // Over the floats in their order: down from the top in ever larger steps until enough are reached, then bisect until
        // the count is near enough from above.
        let (mut low, mut high) = (order_of(f32::MIN), order_of(high));
        let mut step = 1 << 20;
        while low < high {
            let bisect = low + (high - low).div_ceil(2);
            let middle = bisect.max(high.saturating_sub(step));
            let found = count(s, values, float_of(middle));
            if found < want {
                high = middle - 1;
                step = step.saturating_mul(4);
            } else {
                low = middle;
                if found <= want + want / 4 {
                    break;
                }
            }
        }
        float_of(low)
    }
}

/// A value that at least `want` of `values` reach, and not many more where that is possible; the lowest finite number if
/// there are not that many. `high` is at least the largest.
#[inline]
pub(crate) fn threshold(level: Level, values: &[f32], high: f32, want: usize) -> f32 {
    if want > values.len() {
        return f32::MIN;
    }
    level.run(Pass { values, want, high })
}

/// The smallest number in `low..=high` with a property that all numbers above it share, as a float.
pub(crate) fn smallest(
    mut low: u32,
    mut high: u32,
    holds: impl Fn(u32) -> bool,
    float: impl Fn(u32) -> f32,
) -> f32 {
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) { high = middle } else { low = middle + 1 }
    }
    float(low)
}

/// The place of a float in the order of all floats.
#[inline(always)]
pub(crate) fn order_of(value: f32) -> u32 {
    let bits = value.to_bits();
    if bits >> 31 == 0 { bits | 1 << 31 } else { !bits }
}

/// The float at a place in the order of all floats.
#[inline(always)]
pub(crate) fn float_of(order: u32) -> f32 {
    f32::from_bits(if order >> 31 == 0 { !order } else { order & !(1 << 31) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enough_values_reach_it_and_few_more() {
        let values: Vec<f32> = (0..1187).map(|i| ((i * 7919) % 1187) as f32 * 0.01 - 3.0).collect();
        for level in Level::tested() {
            for want in [1, 2, 50, 64, 600, 1187] {
                let reaching =
                    values.iter().filter(|v| **v >= threshold(level, &values, 8.86, want)).count();
                assert!(
                    reaching >= want && reaching <= want + want / 4,
                    "{level} {want} {reaching}"
                );
            }
            assert_eq!(threshold(level, &values, 8.86, 1188), f32::MIN);
        }
    }

    #[test]
    fn ties_and_masked_blocks_cannot_be_split() {
        for level in Level::tested() {
            let values = [1.0, f32::NEG_INFINITY, 1.0, 1.0, -2.0];
            assert_eq!(threshold(level, &values, 1.0, 1), 1.0, "{level}");
            assert!(threshold(level, &values, 1.0, 4) <= -2.0);
            assert_eq!(threshold(level, &values, 1.0, 5), f32::MIN);
        }
    }
}
