//! How many of a row's tokens lie on each step of an even grid of logits: a first picture of a row that is not peaked.

use super::threshold::{float_of, order_of, smallest};
use super::weight::ROUND;
use super::{BLOCK, blocks_of};
use crate::element::{Element, LANES};
use crate::level::Level;
use core::hint::black_box;
use pulp::{Simd, WithSimd};

/// Steps of a grid. A power of two, and few enough for a core's nearest cache.
pub(crate) const STEPS: usize = 1024;

/// An even grid of logits, from the top down. Its last step takes all that lies below, too, and all above the top.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    top: f32,
    /// Steps for a difference of 1.
    fineness: f32,
}

impl Grid {
    /// A grid from `top` to about `low`. Where there is no such grid, because both are the same or as far apart as floats
    /// go, it is some other one.
    pub fn new(top: f32, low: f32) -> Self {
        let fineness = (STEPS - 2) as f32 / (top - low);
        Self { top, fineness: if fineness.is_normal() { fineness } else { 1.0 } }
    }

    /// The top.
    pub fn top(&self) -> f32 {
        self.top
    }

    /// The step of a logit.
    pub fn step(&self, logit: f32) -> usize {
        let last = (STEPS - 1) as f32;
        let place = (self.top - logit) * self.fineness;
        let place = if place >= 0.0 { place.min(last) } else { last };
        ((place + ROUND).to_bits() - ROUND.to_bits()) as usize
    }

    /// The lowest logit of a step and all steps up to the top.
    pub fn end(&self, step: usize) -> f32 {
        if step >= STEPS - 1 {
            return f32::MIN;
        }
        let (low, high) = (order_of(f32::MIN), order_of(self.top));
        smallest(low, high, |order| self.step(float_of(order)) <= step, float_of)
    }

    /// The logit in the middle of a step, about.
    pub fn middle(&self, step: usize) -> f32 {
        self.top - step as f32 / self.fineness
    }
}

/// Tokens next to each other often lie on the same step, where each addition would wait for the one before; so there are
/// this many counters for each, used in turn.
const COPIES: usize = 4;

/// Apart from each other by no power of two: a CPU takes addresses that share their low bits for the same.
const APART: usize = STEPS + 16;

/// Reused memory of [`count`].
pub(crate) type Counters = Vec<[u32; APART]>;

struct Pass<'a, E, B> {
    row: &'a [E],
    grid: Grid,
    blocks: B,
    counters: &'a mut [[u32; APART]; COPIES],
}

impl<E: Element, B: Iterator<Item = usize>> WithSimd for Pass<'_, E, B> {
    /// How many masked tokens were counted that the row doesn't have.
    type Output = u32;

    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) -> u32 {
        let Self { row, grid, blocks, counters } = self;
        let (top, fineness) = (s.splat_f32s(grid.top), s.splat_f32s(grid.fineness));
        let (last_step, round) = (s.splat_f32s((STEPS - 1) as f32), s.splat_f32s(ROUND));
        let zero = s.splat_f32s(0.0);
        let (full, last) = blocks_of(row);
        let mut filled_up = 0;
        for b in blocks {
            let block = full.get(b).unwrap_or(&last);
            if b == full.len() {
                filled_up += (BLOCK - row.len() % BLOCK) as u32;
            }
            for group in block.as_chunks().0 {
                let logits = E::widen(group);
                let mut places = [0u32; LANES];
                let out = S::as_mut_simd_u32s(&mut places).0.iter_mut();
                for (place, &logit) in out.zip(S::as_simd_f32s(&logits).0) {
                    let below = s.mul_f32s(s.sub_f32s(top, logit), fineness);
                    let step = s.min_f32s(below, last_step);
                    let above = s.less_than_f32s(below, zero);
                    let step = s.add_f32s(s.select_f32s(above, last_step, step), round);
                    *place = s.transmute_u32s_f32s(step);
                }
                // Left alone, the compiler takes vectors apart lane by lane; loads from memory are much cheaper.
                for (i, &place) in black_box(&places).iter().enumerate() {
                    // The remainder takes the constant's bits away.
                    counters[i % COPIES][place as usize % STEPS] += 1;
                }
            }
        }
        filled_up
    }
}

/// Adds the number of tokens on each step in some blocks of a checked row, times `factor`, to `out`, which is as long as
/// there are steps. Masked tokens are on the last.
pub(crate) fn count<E: Element>(
    level: Level,
    row: &[E],
    grid: Grid,
    blocks: impl Iterator<Item = usize>,
    factor: u32,
    counters: &mut Counters,
    out: &mut [u32],
) {
    counters.clear();
    counters.resize(COPIES, [0; APART]);
    if let Some(counters) = counters.first_chunk_mut() {
        let filled_up = level.run(Pass { row, grid, blocks, counters: &mut *counters });
        counters[0][STEPS - 1] = counters[0][STEPS - 1].wrapping_sub(filled_up);
    }
    for (step, out) in out.iter_mut().enumerate() {
        let sum = counters.iter().fold(0u32, |sum, copy| sum.wrapping_add(copy[step]));
        *out += factor * sum;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_those_of_a_plain_loop_and_ends_bound_their_steps() {
        let mut row: Vec<f32> =
            (0..5000).map(|i| ((i * 7919) % 4999) as f32 * 0.004 - 12.0).collect();
        row[77] = f32::NEG_INFINITY;
        let top = row.iter().copied().fold(f32::MIN, f32::max);
        let mut counters = Vec::new();
        for (top, low) in [
            (top, -12.0),
            (top, 3.0),
            (top, top),
            (top, f32::MIN),
            (top, top.next_down()),
            (2.5, -0.5),
        ] {
            let grid = Grid::new(top, low);
            for level in Level::tested() {
                for n in [1, 16, 17, 128, row.len()] {
                    let (row, mut counts) = (&row[..n], vec![0; STEPS]);
                    // The even blocks count thrice, the odd ones once.
                    let blocks = n.div_ceil(BLOCK);
                    for (first, factor) in [(0, 3), (1, 1)] {
                        let some = (first..blocks).step_by(2);
                        count(level, row, grid, some, factor, &mut counters, &mut counts);
                    }
                    let mut want = vec![0; STEPS];
                    let times = |i| [3, 1][i / BLOCK % 2];
                    row.iter().enumerate().for_each(|(i, &l)| want[grid.step(l)] += times(i));
                    assert_eq!(counts, want, "{level} {n} {low}");
                }
            }
            for step in [0, 1, 500, STEPS - 2] {
                let end = grid.end(step);
                assert!(
                    grid.step(end) <= step && grid.step(end.next_down()) > step,
                    "{low} {step}"
                );
            }
        }
    }
}
