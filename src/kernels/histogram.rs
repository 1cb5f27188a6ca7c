//! Count and exact mass of a row's tokens per bucket of weights: an exponent and some bits of the mantissa.

use super::exp::{HI, HI_BITS, Halves, LO_BITS, LO_ROUND, check_row};
use super::for_batches;
use super::weight::{BATCH, ROUND, Scale, Weigher, pinned};
use crate::element::{Element, LANES};
use crate::error::Error;
use crate::level::Level;
use core::hint::black_box;
use pulp::{Simd, WithSimd};

/// A weight of 2^-44 or less has no mass, so 44 powers of two matter.
const EXPONENTS: usize = 44;
const ONE_BITS: u32 = 1.0f32.to_bits();
/// The largest weight without mass, `2^-44`: half a unit, which rounds to even.
const LEAST: f32 = f32::from_bits(ONE_BITS - ((EXPONENTS as u32) << 23));
/// Scaled weights have this in their bits.
const SCALED: u32 = (HI_BITS as u32) << 23;

/// Mantissa bits that select a bucket in the samplers' histogram.
const FINE: u32 = 5;

/// Buckets of the samplers' histogram: the weight 1 alone, then 32 to a power of two.
pub(crate) const BUCKETS: usize = 1 + (EXPONENTS << FINE);

/// Counts from the top, so that buckets ascend with the rank: 0 holds the weight 1 alone. `BUCKETS` or more for a weight
/// below all that have mass.
pub(crate) fn bucket_of(weight: f32) -> usize {
    (first(FINE).wrapping_sub(weight.to_bits()) >> (23 - FINE)) as usize
}

/// The smallest weight of a bucket.
pub(crate) fn bucket_floor(bucket: usize) -> f32 {
    f32::from_bits(ONE_BITS - ((bucket as u32) << (23 - FINE)))
}

/// What the bits of a weight are subtracted from to get its bucket, shifted.
const fn first(fine: u32) -> u32 {
    ONE_BITS + (1 << (23 - fine)) - 1
}

/// Tokens next to each other often fall into the same bucket, where each addition would wait for the one before; so
/// there are this many of every bucket, used in turn.
const COPIES: usize = 4;

/// The sums of a bucket.
pub(crate) type Copies = [u64; COPIES];

/// Sums masses and counts for a power of two of buckets each, or none; the last takes what has no mass.
struct Pass<'a, E, const FINE: u32, const MASSES: usize, const COUNTS: usize> {
    row: &'a [E],
    scale: Scale,
    masses: &'a mut [Copies; MASSES],
    counts: &'a mut [Copies; COUNTS],
}

impl<E: Element, const FINE: u32, const MASSES: usize, const COUNTS: usize> WithSimd
    for Pass<'_, E, FINE, MASSES, COUNTS>
{
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) {
        let weigher = Weigher::new(s, self.scale, HI_BITS);
        let halves = Halves::new(s);
        let no_mass = pinned(s, LEAST * HI);
        let last = const { if MASSES > COUNTS { MASSES } else { COUNTS } } as u32 - 1;
        let (first, last) = (s.splat_u32s(first(FINE) + SCALED), s.splat_u32s(last));
        let (round, lo_round) = (s.splat_u32s(ROUND.to_bits()), s.splat_u32s(LO_ROUND.to_bits()));
        let Self { masses, counts, .. } = self;
        let mut x = [[0.0; LANES]; BATCH];
        for_batches(
            self.row,
            #[inline(always)]
            |groups| {
                weigher.arguments(s, groups, &mut x);
                let x = &mut x[..groups.len()];
                weigher.massive_weights(s, x);
                for x in x {
                    let (mut hi, mut lo) = ([0u32; LANES], [0u32; LANES]);
                    let mut places = [0u32; LANES];
                    let parts = S::as_mut_simd_u32s(&mut hi).0.iter_mut();
                    let parts = parts.zip(S::as_mut_simd_u32s(&mut lo).0);
                    let out = parts.zip(S::as_mut_simd_u32s(&mut places).0);
                    for (&t, ((hi, lo), place)) in S::as_simd_f32s(x).0.iter().zip(out) {
                        let (h, l) = halves.of(s, t);
                        (*hi, *lo) = (s.sub_u32s(h, round), s.sub_u32s(l, lo_round));
                        let below = s.sub_u32s(first, s.transmute_u32s_f32s(t));
                        let below = s.wrapping_dyn_shr_u32s(below, s.splat_u32s(23 - FINE));
                        let bucket = s.select_u32s(s.greater_than_f32s(t, no_mass), below, last);
                        *place = s.wrapping_dyn_shl_u32s(bucket, s.splat_u32s(COPIES.ilog2()));
                    }
                    // Left alone, the compiler takes vectors apart lane by lane; loads from memory are much cheaper.
                    let (hi, lo, places) = black_box((&hi, &lo, &places));
                    for i in 0..LANES {
                        // Always inside; the remainder only shows it.
                        let place = places[i] as usize;
                        if MASSES != 0 {
                            let low = i64::from(lo[i] as i32);
                            let mass = (u64::from(hi[i]) << LO_BITS).wrapping_add_signed(low);
                            masses.as_flattened_mut()
                                [(place % (MASSES * COPIES)) | (i % COPIES)] += mass;
                        }
                        if COUNTS != 0 {
                            counts.as_flattened_mut()
                                [(place % (COUNTS * COPIES)) | (i % COPIES)] += 1;
                        }
                    }
                }
            },
        );
    }
}

/// The samplers' histogram of one quantity.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    filling: Vec<Copies>,
    /// One sum a bucket.
    pub buckets: Vec<u64>,
}

/// A power of two above `BUCKETS`.
const ROOM: usize = 2048;

impl Histogram {
    fn fill(&mut self, pass: impl FnOnce(&mut [Copies; ROOM])) {
        self.filling.clear();
        self.filling.resize(ROOM, Copies::default());
        if let Some(filling) = self.filling.first_chunk_mut() {
            pass(filling);
        }
        self.buckets.clear();
        self.buckets.extend(self.filling[..BUCKETS].iter().map(total));
    }

    /// The masses of a row's tokens.
    pub fn fill_masses<E: Element>(&mut self, level: Level, row: &[E], scale: Scale) {
        self.fill(|masses| {
            level.run(Pass::<E, FINE, ROOM, 0> { row, scale, masses, counts: &mut [] });
        });
    }

    /// The number of a row's tokens with mass.
    pub fn fill_counts<E: Element>(&mut self, level: Level, row: &[E], scale: Scale) {
        self.fill(|counts| {
            level.run(Pass::<E, FINE, 0, ROOM> { row, scale, masses: &mut [], counts });
        });
    }
}

fn total(copies: &Copies) -> u64 {
    copies.iter().sum()
}

/// Tokens with mass, by the exponent of their weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExponentHistogram {
    count: [u32; EXPONENTS + 1],
    mass: [u64; EXPONENTS + 1],
}

impl ExponentHistogram {
    /// Entries: one for each exponent 0, -1, ..., -44.
    pub const LEN: usize = EXPONENTS + 1;

    /// How many tokens have a weight `w` with `2^-i <= w < 2^(1 - i)` and a mass; `counts()[0]` are those with weight 1.
    pub fn counts(&self) -> &[u32; EXPONENTS + 1] {
        &self.count
    }

    /// The exact masses of the same tokens, in units of `2^-43`.
    pub fn masses(&self) -> &[u64; EXPONENTS + 1] {
        &self.mass
    }
}

/// Count and exact mass of a row's tokens per exponent of their weight `E((l - m) / T)`.
///
/// `scale` holds `m`, the row's maximum (or more), and `T`. Tokens without mass (weight `2^-44` or less, masked) are not counted.
///
/// # Errors
/// As [`exp_weights`](super::exp_weights).
///
/// ```
/// use sortless::{kernels::{exponent_histogram, Scale, ONE}, Level};
/// let row = [0.0f32, -0.1, f32::NEG_INFINITY, -1.0];
/// let histogram = exponent_histogram(Level::best(), &row, Scale::new(0.0, 1.0)?)?;
/// assert_eq!(histogram.counts()[..3], [1, 1, 1]); // 1, then e^-0.1 in [1/2, 1), then e^-1 in [1/4, 1/2)
/// assert_eq!(histogram.masses()[0], ONE);
/// # Ok::<(), sortless::Error>(())
/// ```
pub fn exponent_histogram<E: Element>(
    level: Level,
    row: &[E],
    scale: Scale,
) -> Result<ExponentHistogram, Error> {
    check_row(level, row, scale)?;
    let (mut masses, mut counts) = ([Copies::default(); 64], [Copies::default(); 64]);
    level.run(Pass::<E, 0, 64, 64> { row, scale, masses: &mut masses, counts: &mut counts });
    Ok(ExponentHistogram {
        count: core::array::from_fn(|i| total(&counts[i]) as u32),
        mass: core::array::from_fn(|i| total(&masses[i])),
    })
}
