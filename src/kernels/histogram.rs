//! Count and exact mass of a row's tokens per bucket of weights: an exponent and some bits of the mantissa.

use super::for_groups;
use super::weight::{Exp, Scale, arguments, mass};
use crate::element::{Element, LANES};
use crate::error::Error;
use crate::level::Level;
use pulp::{Simd, WithSimd};

/// A weight of 2^-44 or less has no mass, so 44 powers of two matter.
const EXPONENTS: usize = 44;
const ONE_BITS: u32 = 1.0f32.to_bits();

/// Mantissa bits that select a bucket in the samplers' histogram.
const FINE: u32 = 5;

/// Buckets of the samplers' histogram: the weight 1 alone, then 32 to a power of two.
pub(crate) const BUCKETS: usize = 1 + (EXPONENTS << FINE);

/// The tokens of one bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bucket {
    pub mass: u64,
    pub count: u64,
}

/// Counts from the top, so that buckets ascend with the rank: 0 holds the weight 1 alone.
#[inline(always)]
fn bucket_at<const FINE: u32>(weight: f32) -> usize {
    let shift = 23 - FINE;
    (((ONE_BITS + (1 << shift) - 1).wrapping_sub(weight.to_bits())) >> shift) as usize
}

/// The bucket of a weight in the samplers' histogram; `BUCKETS` or more for one without mass.
pub(crate) fn bucket_of(weight: f32) -> usize {
    bucket_at::<FINE>(weight)
}

/// The smallest weight of a bucket of the samplers' histogram.
pub(crate) fn bucket_floor(bucket: usize) -> f32 {
    f32::from_bits(ONE_BITS - ((bucket as u32) << (23 - FINE)))
}

struct Pass<'a, E, const FINE: u32> {
    row: &'a [E],
    scale: Scale,
    /// One more than there are buckets: the last takes what has no mass.
    buckets: &'a mut [Bucket],
}

impl<E: Element, const FINE: u32> WithSimd for Pass<'_, E, FINE> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) {
        let max = s.splat_f32s(self.scale.max());
        let temperature = s.splat_f32s(self.scale.temperature());
        let exp = Exp::new(s, 0);
        let buckets = self.buckets;
        let last = buckets.len() - 1;
        for_groups(
            self.row,
            #[inline(always)]
            |group| {
                let logits = E::widen(group);
                let mut stored = [0.0f32; LANES];
                for (&logit, w) in
                    S::as_simd_f32s(&logits).0.iter().zip(S::as_mut_simd_f32s(&mut stored).0)
                {
                    *w = exp.weights(s, arguments(s, logit, max, temperature));
                }
                for w in stored {
                    let mass = mass(w);
                    let bucket = &mut buckets[bucket_at::<FINE>(w).min(last)];
                    bucket.mass += mass;
                    bucket.count += u64::from(mass != 0);
                }
            },
        );
    }
}

/// Fills the samplers' histogram, `BUCKETS + 1` buckets, of which the last stays empty.
#[inline]
pub(crate) fn histogram<E: Element>(
    level: Level,
    row: &[E],
    scale: Scale,
    buckets: &mut Vec<Bucket>,
) {
    buckets.clear();
    buckets.resize(BUCKETS + 1, Bucket::default());
    level.run(Pass::<E, FINE> { row, scale, buckets });
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
/// `scale` holds `m`, the row's maximum, and `T`. Tokens without mass (weight `2^-44` or less, masked, NaN) are not counted.
///
/// # Errors
/// [`Error::RowLength`] over `2^20` logits.
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
    if row.len() > crate::MAX_VOCAB {
        return Err(Error::RowLength { len: row.len() });
    }
    let mut buckets = [Bucket::default(); EXPONENTS + 2];
    level.run(Pass::<E, 0> { row, scale, buckets: &mut buckets });
    let mut histogram = ExponentHistogram { count: [0; EXPONENTS + 1], mass: [0; EXPONENTS + 1] };
    for (i, bucket) in buckets[..=EXPONENTS].iter().enumerate() {
        histogram.count[i] = bucket.count as u32;
        histogram.mass[i] = bucket.mass;
    }
    Ok(histogram)
}
