//! Count and exact mass of a row's tokens per exponent of their weight.

use super::exp::{HI, HI_BITS, Halves, LO_BITS, LO_ROUND, check_row};
use super::weight::{Batch, LEAST, Lanes, ROUND, Scale, Take, Weigher, pinned};
use crate::element::{Element, LANES};
use crate::error::Error;
use crate::level::Level;
use core::hint::black_box;
use pulp::{Simd, WithSimd};

/// A weight of 2^-44 or less has no mass, so 44 powers of two matter.
const EXPONENTS: usize = 44;
const ONE_BITS: u32 = 1.0f32.to_bits();
/// Scaled weights have this in their bits.
const SCALED: u32 = (HI_BITS as u32) << 23;

/// What the bits of a weight are subtracted from to get its bucket, shifted: buckets count from the top, and 0 holds the
/// weight 1 alone.
const FIRST: u32 = ONE_BITS + (1 << 23) - 1;

/// A power of two above the number of exponents. The last bucket takes what has no mass.
const ROOM: usize = 64;

/// Tokens next to each other often fall into the same bucket, where each addition would wait for the one before; so
/// there are this many of every bucket, used in turn.
const COPIES: usize = 4;

/// The sums of a bucket.
type Copies = [u64; COPIES];

/// Sums masses and counts, bucket by bucket.
struct Pass<'a, E> {
    row: &'a [E],
    scale: Scale,
    masses: &'a mut [Copies; ROOM],
    counts: &'a mut [Copies; ROOM],
}

struct Fill<'a, S: Simd> {
    halves: Halves<S>,
    no_mass: S::f32s,
    first: S::u32s,
    last: S::u32s,
    round: S::u32s,
    lo_round: S::u32s,
    masses: &'a mut [Copies; ROOM],
    counts: &'a mut [Copies; ROOM],
}

impl<E, S: Simd> Take<E, S> for Fill<'_, S> {
    #[inline(always)]
    fn take(&mut self, s: S, _: &Batch<E>, _: &Lanes, w: &Lanes) {
        for w in w {
            let (mut hi, mut lo) = ([0u32; LANES], [0u32; LANES]);
            let mut places = [0u32; LANES];
            let parts = S::as_mut_simd_u32s(&mut hi).0.iter_mut();
            let parts = parts.zip(S::as_mut_simd_u32s(&mut lo).0);
            let out = parts.zip(S::as_mut_simd_u32s(&mut places).0);
            for (&t, ((hi, lo), place)) in S::as_simd_f32s(w).0.iter().zip(out) {
                let (h, l) = self.halves.of(s, t);
                (*hi, *lo) = (s.sub_u32s(h, self.round), s.sub_u32s(l, self.lo_round));
                let below = s.sub_u32s(self.first, s.transmute_u32s_f32s(t));
                let below = s.wrapping_dyn_shr_u32s(below, s.splat_u32s(23));
                let counts = s.greater_than_f32s(t, self.no_mass);
                let bucket = s.select_u32s(counts, below, self.last);
                *place = s.wrapping_dyn_shl_u32s(bucket, s.splat_u32s(COPIES.ilog2()));
            }
            // Left alone, the compiler takes vectors apart lane by lane; loads from memory are much cheaper.
            let (hi, lo, places) = black_box((&hi, &lo, &places));
            for i in 0..LANES {
                // Always inside; the remainder only shows it.
                let place = (places[i] as usize % (ROOM * COPIES)) | (i % COPIES);
                let low = i64::from(lo[i] as i32);
                let mass = (u64::from(hi[i]) << LO_BITS).wrapping_add_signed(low);
                self.masses.as_flattened_mut()[place] += mass;
                self.counts.as_flattened_mut()[place] += 1;
            }
        }
    }
}

impl<E: Element> WithSimd for Pass<'_, E> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) {
        let mut fill = Fill::<S> {
            halves: Halves::new(s),
            no_mass: pinned(s, LEAST * HI),
            first: s.splat_u32s(FIRST + SCALED),
            last: s.splat_u32s(ROOM as u32 - 1),
            round: s.splat_u32s(ROUND.to_bits()),
            lo_round: s.splat_u32s(LO_ROUND.to_bits()),
            masses: self.masses,
            counts: self.counts,
        };
        Weigher::new(s, self.scale, HI_BITS).over::<false, E>(s, self.row, &mut fill);
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
    let (mut masses, mut counts) = ([Copies::default(); ROOM], [Copies::default(); ROOM]);
    level.run(Pass { row, scale, masses: &mut masses, counts: &mut counts });
    Ok(ExponentHistogram {
        count: core::array::from_fn(|i| total(&counts[i]) as u32),
        mass: core::array::from_fn(|i| total(&masses[i])),
    })
}
