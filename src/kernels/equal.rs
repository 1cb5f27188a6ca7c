//! Large groups of equal logits: whether a range holds a single value, and its n-th token, without listing them.

use super::collect::Between;
use super::scan::BLOCK;
use super::{for_batches, lanes_of};
use crate::element::Element;
use crate::level::Level;
use pulp::{Simd, WithSimd};

/// What a range of logits holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Survey {
    /// Tokens in it.
    pub inside: u64,
    /// The lowest and the highest logit in it; the other way round if it is empty.
    pub extent: (f32, f32),
}

/// The sum of counts in lanes.
#[inline(always)]
pub(super) fn total<S: Simd>(counts: S::u32s) -> u64 {
    let mut total = 0;
    for n in lanes_of::<S>(counts) {
        total += u64::from(n);
    }
    total
}

struct SurveyPass<'a, E> {
    row: &'a [E],
    range: Between,
}

impl<E: Element> WithSimd for SurveyPass<'_, E> {
    type Output = Survey;

    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) -> Survey {
        let low = s.splat_f32s(E::key_at_least(self.range.low));
        let end = s.splat_f32s(E::key_at_least(self.range.end));
        let one = s.splat_u32s(1);
        let (mut lowest, mut highest) = (s.splat_f32s(f32::MAX), s.splat_f32s(f32::MIN));
        let (mut above, mut reaching) = (s.splat_u32s(0), s.splat_u32s(0));
        for_batches(
            self.row,
            #[inline(always)]
            |groups| {
                for group in groups {
                    let keys = E::keys(group);
                    for &key in S::as_simd_f32s(&keys).0 {
                        let ends = s.greater_than_or_equal_f32s(key, end);
                        above = s.select_u32s(ends, s.add_u32s(above, one), above);
                        // Out of the range: no lowest and no highest.
                        let from = s.greater_than_or_equal_f32s(key, low);
                        reaching = s.select_u32s(from, s.add_u32s(reaching, one), reaching);
                        let least = s.select_f32s(from, key, s.splat_f32s(f32::MAX));
                        let most = s.select_f32s(ends, s.splat_f32s(f32::MIN), key);
                        lowest = s.min_f32s(lowest, least);
                        highest = s.max_f32s(highest, most);
                    }
                }
            },
        );
        let (above, reaching) = (total::<S>(above), total::<S>(reaching));
        // Adding +0 makes the two zeros one.
        let value = |key: f32| E::from_key(key) + 0.0;
        Survey {
            inside: reaching - above,
            extent: (value(s.reduce_min_f32s(lowest)), value(s.reduce_max_f32s(highest))),
        }
    }
}

/// Surveys a range of a checked row that some token is in.
#[inline]
pub(crate) fn survey<E: Element>(level: Level, row: &[E], range: Between) -> Survey {
    level.run(SurveyPass { row, range })
}

struct NthPass<'a, E> {
    row: &'a [E],
    blocks: &'a [f32],
    value: f32,
    n: u64,
}

impl<E: Element> WithSimd for NthPass<'_, E> {
    type Output = Option<usize>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Option<usize> {
        let Self { row, blocks, value, mut n } = self;
        for (b, (block, &top)) in row.chunks(BLOCK).zip(blocks).enumerate() {
            if top < value {
                continue;
            }
            let mut equal = 0;
            for v in block {
                equal += u32::from(v.to_f32() == value);
            }
            let equal = u64::from(equal);
            if equal > n {
                let places = block.iter().enumerate().filter(|(_, v)| v.to_f32() == value);
                return places.map(|(i, _)| b * BLOCK + i).nth(n as usize);
            }
            n -= equal;
        }
        None
    }
}

/// The index of the `n`-th token, from 0, whose logit equals `value`.
#[inline]
pub(crate) fn nth_equal<E: Element>(
    level: Level,
    row: &[E],
    blocks: &[f32],
    value: f32,
    n: u64,
) -> Option<usize> {
    level.run(NthPass { row, blocks, value, n })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_places_are_those_of_a_plain_loop() {
        let row: Vec<f32> = (0..1000).map(|i| ((i * 37) % 11) as f32 - 5.0).collect();
        let blocks: Vec<f32> =
            row.chunks(BLOCK).map(|b| b.iter().copied().fold(f32::MIN, f32::max)).collect();
        for level in Level::tested() {
            for (low, end) in [(-5.0, 6.0), (0.0, 1.0), (2.0, f32::INFINITY), (-0.5, 3.5)] {
                let found = survey(level, &row, Between { low, end });
                let inside = || row.iter().copied().filter(|l| *l >= low && *l < end);
                assert_eq!(found.inside, inside().count() as u64);
                assert_eq!(found.extent.0, inside().fold(f32::MAX, f32::min), "{level} {low}");
                assert_eq!(found.extent.1, inside().fold(f32::MIN, f32::max), "{level} {low}");
            }
            for value in [-5.0f32, 0.0, 5.0] {
                let places: Vec<usize> = (0..row.len()).filter(|&i| row[i] == value).collect();
                for n in 0..=places.len() {
                    let found = nth_equal(level, &row, &blocks, value, n as u64);
                    assert_eq!(found, places.get(n).copied(), "{level} {value} {n}");
                }
            }
        }
    }
}
