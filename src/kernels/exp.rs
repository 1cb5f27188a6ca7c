//! Weights and their exact total mass.

use super::lanes_of;
use super::weight::{BATCH, Batch, Lanes, ROUND, Scale, Take, Weigher, pinned, vectors};
use crate::element::{Element, LANES};
use crate::error::Error;
use crate::level::Level;
use pulp::{Simd, WithSimd};

// A mass in 32-bit lanes: `t = w * 2^22` splits exactly into its nearest integer, at most 2^22, and a remainder in
// [-1/2, 1/2]. Adding 6 rounds the remainder to a multiple of 2^-21, ties to even. So `q = hi * 2^21 + lo`, and
// since `hi * 2^21` is even, that is `w * 2^43` rounded once, ties to even.
pub(super) const HI_BITS: u8 = 22;
pub(super) const HI: f32 = (1u32 << HI_BITS) as f32;
pub(super) const LO_ROUND: f32 = 6.0;
pub(super) const LO_BITS: u32 = 21;

/// The constants of the two halves of a mass.
#[derive(Clone, Copy)]
pub(super) struct Halves<S: Simd> {
    round: S::f32s,
    lo_round: S::f32s,
}

impl<S: Simd> Halves<S> {
    #[inline(always)]
    pub fn new(s: S) -> Self {
        Self { round: pinned(s, ROUND), lo_round: pinned(s, LO_ROUND) }
    }

    /// `hi` and `lo` of `t`, each with the bits of its constant added, [`ROUND`] and [`LO_ROUND`].
    #[inline(always)]
    pub fn of(&self, s: S, t: S::f32s) -> (S::u32s, S::u32s) {
        let shifted = s.add_f32s(t, self.round);
        let rest = s.sub_f32s(t, s.sub_f32s(shifted, self.round));
        let rest = s.add_f32s(rest, self.lo_round);
        (s.transmute_u32s_f32s(shifted), s.transmute_u32s_f32s(rest))
    }
}

/// A sum of masses: in 32-bit lanes, from time to time moved to a single integer.
#[derive(Clone, Copy)]
pub(super) struct Sum<S: Simd> {
    hi: S::u32s,
    lo: S::u32s,
    /// How many vectors are in the lanes.
    vectors: u32,
    moved: u64,
}

impl<S: Simd> Sum<S> {
    /// More vectors would not fit: `1023 * 2^22 < 2^32`, and the other half is at most `2^20` in size.
    const MOST: u32 = 1023;

    #[inline(always)]
    pub fn new(s: S) -> Self {
        Self { hi: s.splat_u32s(0), lo: s.splat_u32s(0), vectors: 0, moved: 0 }
    }

    /// Adds a vector's masses, [`Halves`].
    #[inline(always)]
    pub fn add(&mut self, s: S, (hi, lo): (S::u32s, S::u32s)) {
        self.hi = s.add_u32s(self.hi, hi);
        self.lo = s.add_u32s(self.lo, lo);
        self.vectors += 1;
    }

    /// Whether there is no room for another batch.
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.vectors > Self::MOST - (BATCH * LANES / S::F32_LANES) as u32
    }

    /// Makes room for another batch.
    #[inline(always)]
    pub fn make_room(&mut self, s: S) {
        *self = Self { moved: self.total(s), ..Self::new(s) };
    }

    /// The sum.
    #[inline(always)]
    pub fn total(&self, s: S) -> u64 {
        self.moved.wrapping_add(add_up::<S>(self.hi, self.lo, s.splat_u32s(self.vectors)))
    }
}

/// A sum of some masses, and their number: has room as long as a [`Sum`] that takes all of them has.
#[derive(Clone, Copy)]
pub(super) struct Part<S: Simd> {
    hi: S::u32s,
    lo: S::u32s,
    count: S::u32s,
    /// Number and mass of what is no longer in the lanes.
    moved: (u64, u64),
}

impl<S: Simd> Part<S> {
    #[inline(always)]
    pub fn new(s: S) -> Self {
        let zero = s.splat_u32s(0);
        Self { hi: zero, lo: zero, count: zero, moved: (0, 0) }
    }

    /// Adds those of a vector's masses, [`Halves`], that are in.
    #[inline(always)]
    pub fn add(&mut self, s: S, is_in: S::m32s, (hi, lo): (S::u32s, S::u32s)) {
        // Where a mask is a vector of ones and zeros, that is the mask itself.
        let is_in = s.select_u32s(is_in, s.splat_u32s(u32::MAX), s.splat_u32s(0));
        self.hi = s.add_u32s(self.hi, s.and_u32s(hi, is_in));
        self.lo = s.add_u32s(self.lo, s.and_u32s(lo, is_in));
        self.count = s.sub_u32s(self.count, is_in);
    }

    #[inline(always)]
    pub fn make_room(&mut self, s: S) {
        *self = Self { moved: self.total(), ..Self::new(s) };
    }

    /// Number and sum.
    #[inline(always)]
    pub fn total(&self) -> (u64, u64) {
        let (count, mass) = self.moved;
        let more = add_up::<S>(self.hi, self.lo, self.count);
        (count + super::equal::total::<S>(self.count), mass.wrapping_add(more))
    }
}

/// The sum of the masses in 32-bit lanes. Each of the `counts` in a lane added the bits of the constants, too.
#[inline(always)]
fn add_up<S: Simd>(hi: S::u32s, lo: S::u32s, counts: S::u32s) -> u64 {
    let (hi, lo, counts) = (lanes_of::<S>(hi), lanes_of::<S>(lo), lanes_of::<S>(counts));
    let mut total = 0u64;
    for i in 0..S::U32_LANES {
        let constant = |c: f32| c.to_bits().wrapping_mul(counts[i]);
        let high = u64::from(hi[i].wrapping_sub(constant(ROUND)));
        let low = i64::from(lo[i].wrapping_sub(constant(LO_ROUND)) as i32);
        total = total.wrapping_add(high << LO_BITS).wrapping_add_signed(low);
    }
    total
}

/// Adds up masses, and stores the weights where it has a place for them.
struct Total<'a, S: Simd, const STORE: bool> {
    halves: Halves<S>,
    /// What makes halves of a mass of a weight that is not scaled already.
    hi: S::f32s,
    sum: Sum<S>,
    outs: core::slice::ChunksMut<'a, f32>,
}

impl<E, S: Simd, const STORE: bool> Take<E, S> for Total<'_, S, STORE> {
    #[inline(always)]
    fn take(&mut self, s: S, _: &Batch<E>, _: &Lanes, w: &Lanes) {
        if STORE && let Some(out) = self.outs.next() {
            out.copy_from_slice(&w.as_flattened()[..out.len()]);
        }
        let mut sum = self.sum;
        for &w in vectors::<S>(w) {
            let t = if STORE { s.mul_f32s(w, self.hi) } else { w };
            sum.add(s, self.halves.of(s, t));
        }
        if sum.is_full() {
            sum.make_room(s);
        }
        self.sum = sum;
    }
}

struct Pass<'a, E, const STORE: bool> {
    row: &'a [E],
    scale: Scale,
    out: &'a mut [f32],
}

impl<E: Element, const STORE: bool> WithSimd for Pass<'_, E, STORE> {
    type Output = u64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) -> u64 {
        let weigher = Weigher::new(s, self.scale, if STORE { 0 } else { HI_BITS });
        let mut total = Total::<S, STORE> {
            halves: Halves::new(s),
            hi: pinned(s, HI),
            sum: Sum::new(s),
            outs: self.out.chunks_mut(BATCH * LANES),
        };
        weigher.over::<STORE, E>(s, self.row, &mut total);
        total.sum.total(s)
    }
}

/// The exact total mass of a row.
#[inline]
pub(crate) fn total_mass<E: Element>(level: Level, row: &[E], scale: Scale) -> u64 {
    level.run(Pass::<E, false> { row, scale, out: &mut [] })
}

/// The weights of a row into `out`, which is as long, and their exact total mass.
#[inline]
pub(crate) fn weights_into<E: Element>(
    level: Level,
    row: &[E],
    scale: Scale,
    out: &mut [f32],
) -> u64 {
    debug_assert_eq!(row.len(), out.len());
    level.run(Pass::<E, true> { row, scale, out })
}

/// What the public kernels ask of a row, so that no garbage comes out of them.
pub(super) fn check_row<E: Element>(level: Level, row: &[E], scale: Scale) -> Result<(), Error> {
    if row.len() > crate::MAX_VOCAB {
        return Err(Error::RowLength { len: row.len() });
    }
    if super::max(level, row)? > scale.max() {
        let value = crate::error::Number(f64::from(scale.max()));
        return Err(Error::Parameter { name: "max", value, expected: "the row's maximum" });
    }
    Ok(())
}

/// The weights `E((l - m) / T)` of a row into `out`, and their exact total mass, in units of `2^-43`.
///
/// `scale` holds `m`, the row's maximum (or more), and `T`. The row is read once to check that, then once for the
/// weights; a sampler knows its maximum and doesn't check again.
///
/// # Errors
/// [`Error::RowLength`] over `2^20` logits; [`Error::NotFinite`] with the lowest index that holds NaN or +inf;
/// [`Error::Parameter`] if a logit is above `m`; [`Error::Shape`] if `out` is not as long as the row.
///
/// ```
/// use sortless::{kernels::{exp_weights, Scale, ONE}, Level};
/// let mut weights = [0.0; 3];
/// let total = exp_weights(Level::best(), &[2.0f32, f32::NEG_INFINITY, 2.0], Scale::new(2.0, 1.0)?, &mut weights)?;
/// assert_eq!(weights, [1.0, 0.0, 1.0]);
/// assert_eq!(total, 2 * ONE);
/// # Ok::<(), sortless::Error>(())
/// ```
pub fn exp_weights<E: Element>(
    level: Level,
    row: &[E],
    scale: Scale,
    out: &mut [f32],
) -> Result<u64, Error> {
    check_row(level, row, scale)?;
    if row.len() != out.len() {
        return Err(Error::Shape {
            what: "length of the weights",
            expected: row.len(),
            found: out.len(),
        });
    }
    Ok(weights_into(level, row, scale, out))
}

/// The exact total mass of a row, as [`exp_weights`], but no weight is stored.
///
/// # Errors
/// As [`exp_weights`].
pub fn exp_mass<E: Element>(level: Level, row: &[E], scale: Scale) -> Result<u64, Error> {
    check_row(level, row, scale)?;
    Ok(total_mass(level, row, scale))
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::f16;

    /// Whatever the scale, also where a logit of -2^16 would weigh something.
    #[test]
    fn a_masked_f16_weighs_nothing() {
        for max in [-65_504.0f32, -65_472.0, -60_000.0, 0.0, 3.5, 65_504.0] {
            for temperature in
                [1e-30f32, 1.0 / 512.0, 1.0 / 256.0, 0.25, 0.7, 1.0, 500.0, 1024.0, 1e6]
            {
                let scale = Scale::checked(max, temperature);
                let mut row = vec![f16::from_f32(max); 3];
                row.extend([f16::NEG_INFINITY, f16::MIN, f16::from_f32(max - max.abs() * 1e-3)]);
                let wide: Vec<f32> = row.iter().map(|l| l.to_f32()).collect();
                for level in Level::tested() {
                    let (mut out, mut want) = ([1.0; 6], [2.0; 6]);
                    let total = weights_into(level, &row, scale, &mut out);
                    assert_eq!(total, weights_into(level, &wide, scale, &mut want));
                    assert_eq!(out, want, "{level} {max} {temperature}");
                    assert_eq!((total_mass(level, &row, scale), out[3]), (total, 0.0));
                    let bounds = super::super::cheap_bounds(level, &row, scale, 0..1);
                    assert!(bounds.is_none_or(|(low, high)| low <= total && total <= high));
                }
            }
        }
    }
}
