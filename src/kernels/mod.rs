//! The kernels: passes over a row, each written once over 16 virtual lanes and run on any [`Level`](crate::Level).
//!
//! They are what the samplers are made of, and public because engines have uses for them. A kernel checks only what
//! its own result depends on; a sampler rejects rows with NaN or +inf before anything else.
//!
//! | kernel | gives |
//! |---|---|
//! | [`max`] | the largest logit, or which logit is NaN or +inf |
//! | [`argmax_first`] | the first index of the largest logit |
//! | [`exp_weights`], [`exp_mass`] | the weights `E((l - m) / T)` and their exact total mass, or the mass alone |
//! | [`collect`] | the tokens whose logit reaches a threshold |
//! | [`exponent_histogram`] | count and exact mass of the tokens per exponent of their weight |

mod above;
mod cheap;
mod collect;
mod counts;
mod equal;
mod exp;
mod histogram;
mod moments;
mod scan;
mod threshold;
mod weight;

pub use collect::{Candidate, collect};
pub use exp::{exp_mass, exp_weights};
pub use histogram::{ExponentHistogram, exponent_histogram};
pub use scan::{argmax_first, max};
pub use weight::{CUT_OFF, MASS_BITS, ONE, Scale, mass, weight};

pub(crate) use above::{masses_above, moments, moments_above};
pub(crate) use cheap::{cheap_bounds, cheap_sum};
pub(crate) use collect::{Between, collect_between, collect_ranges, collect_some};
pub(crate) use counts::{Counters, Grid, STEPS, count};
pub(crate) use equal::{Survey, nth_equal, survey};
pub(crate) use exp::{total_mass, weights_into};
pub(crate) use moments::Moments;
pub(crate) use scan::{BLOCK, first_equal, first_fault, scan};
pub(crate) use threshold::{float_of, order_of, smallest, threshold};

use crate::element::{Element, LANES};
use weight::BATCH;

/// Calls `f` with every batch of groups of 16; the last one may be shorter, and its last group is padded with masked tokens.
/// Closures given to it must be `#[inline(always)]`, as everything else between a level and an instruction: one that
/// isn't costs 50 to 100 times.
#[inline(always)]
pub(crate) fn for_batches<E: Element>(row: &[E], mut f: impl FnMut(&[[E; LANES]])) {
    let (full, rest) = row.as_chunks::<{ BATCH * LANES }>();
    for batch in full {
        f(batch.as_chunks().0);
    }
    if !rest.is_empty() {
        let mut last = [[E::MASKED; LANES]; BATCH];
        for (group, part) in last.iter_mut().zip(rest.chunks(LANES)) {
            *group = padded(part);
        }
        f(&last[..rest.len().div_ceil(LANES)]);
    }
}

/// The full blocks of a row, and one more: what is left, filled up with masked tokens.
#[inline(always)]
pub(crate) fn blocks_of<E: Element>(row: &[E]) -> (&[[E; BLOCK]], [E; BLOCK]) {
    let (full, rest) = row.as_chunks();
    let mut last = [E::MASKED; BLOCK];
    last[..rest.len()].copy_from_slice(rest);
    (full, last)
}

/// The lanes of a vector, with zeros where only wider vectors have any.
#[inline(always)]
pub(crate) fn lanes_of<S: pulp::Simd>(vector: S::u32s) -> [u32; LANES] {
    let mut lanes = [0; LANES];
    S::as_mut_simd_u32s(&mut lanes).0[0] = vector;
    lanes
}

/// A short group, filled up with masked tokens.
#[inline(always)]
pub(crate) fn padded<E: Element>(tail: &[E]) -> [E; LANES] {
    let mut group = [E::MASKED; LANES];
    group[..tail.len()].copy_from_slice(tail);
    group
}
