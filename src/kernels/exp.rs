//! Weights and their exact total mass.

use super::padded;
use super::weight::{Exp, ROUND, Scale, arguments, pinned};
use crate::element::{Element, LANES};
use crate::error::Error;
use crate::level::Level;
use pulp::{Simd, WithSimd};

// A mass in 32-bit lanes: `t = w * 2^22` splits exactly into its nearest integer, at most 2^22, and a remainder in
// [-1/2, 1/2]. Adding 6 rounds the remainder to a multiple of 2^-21, ties to even. So `q = hi * 2^21 + lo`, and
// since `hi * 2^21` is even, that is `w * 2^43` rounded once, ties to even.
const HI_BITS: u8 = 22;
const HI: f32 = (1u32 << HI_BITS) as f32;
const LO_ROUND: f32 = 6.0;
const LO_BITS: u32 = 21;

/// Groups until the lanes spill: `1023 * 2^22 < 2^32`, and 512 times `2^20` fits an i32.
const SPILL: usize = 512;

/// Sums of masses, a lane each.
struct Sums {
    hi: [u32; LANES],
    lo: [u32; LANES],
    total: u64,
}

impl Sums {
    #[inline(always)]
    fn new() -> Self {
        Self { hi: [0; LANES], lo: [0; LANES], total: 0 }
    }

    /// Adds up the lanes of `groups` groups. Each added the bits of its constants, too.
    #[inline(always)]
    fn spill(&mut self, groups: usize) {
        let constant = |c: f32| c.to_bits().wrapping_mul(groups as u32);
        for (hi, lo) in self.hi.iter_mut().zip(&mut self.lo) {
            let high = u64::from(hi.wrapping_sub(constant(ROUND)));
            let low = i64::from(lo.wrapping_sub(constant(LO_ROUND)) as i32);
            self.total = self.total.wrapping_add(high << LO_BITS).wrapping_add_signed(low);
            (*hi, *lo) = (0, 0);
        }
    }
}

struct Pass<'a, E, const STORE: bool> {
    row: &'a [E],
    scale: Scale,
    out: &'a mut [f32],
}

/// What a group's weights and masses are computed with.
#[derive(Clone, Copy)]
struct Constants<S: Simd> {
    max: S::f32s,
    temperature: S::f32s,
    exp: Exp<S>,
    hi: S::f32s,
    round: S::f32s,
    lo_round: S::f32s,
}

/// Adds a group's masses to the lanes; gives its weights.
#[inline(always)]
fn group<E: Element, S: Simd, const STORE: bool>(
    s: S,
    group: &[E; LANES],
    c: &Constants<S>,
    sums: &mut Sums,
) -> [f32; LANES] {
    let logits = E::widen(group);
    let mut stored = [0.0; LANES];
    let lanes = S::as_simd_f32s(&logits).0.iter().zip(S::as_mut_simd_f32s(&mut stored).0);
    let hi = S::as_mut_simd_u32s(&mut sums.hi).0.iter_mut();
    let lo = S::as_mut_simd_u32s(&mut sums.lo).0.iter_mut();
    for (((&logit, stored), hi), lo) in lanes.zip(hi).zip(lo) {
        let x = arguments(s, logit, c.max, c.temperature);
        let t = if STORE {
            *stored = c.exp.weights(s, x);
            s.mul_f32s(*stored, c.hi)
        } else {
            c.exp.massive_weights(s, x)
        };
        let shifted = s.add_f32s(t, c.round);
        let rest = s.sub_f32s(t, s.sub_f32s(shifted, c.round));
        let rest = s.add_f32s(rest, c.lo_round);
        *hi = s.add_u32s(*hi, s.transmute_u32s_f32s(shifted));
        *lo = s.add_u32s(*lo, s.transmute_u32s_f32s(rest));
    }
    stored
}

impl<E: Element, const STORE: bool> WithSimd for Pass<'_, E, STORE> {
    type Output = u64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) -> u64 {
        let c = Constants {
            max: s.splat_f32s(self.scale.max()),
            temperature: s.splat_f32s(self.scale.temperature()),
            exp: Exp::new(s, if STORE { 0 } else { HI_BITS }),
            hi: pinned(s, HI),
            round: pinned(s, ROUND),
            lo_round: pinned(s, LO_ROUND),
        };
        let mut sums = Sums::new();
        let (groups, tail) = self.row.as_chunks::<LANES>();
        let (outs, out_tail) = self.out.as_chunks_mut::<LANES>();
        let mut outs = outs.iter_mut();
        for part in groups.chunks(SPILL) {
            for g in part {
                let stored = group::<E, S, STORE>(s, g, &c, &mut sums);
                if STORE && let Some(out) = outs.next() {
                    *out = stored;
                }
            }
            sums.spill(part.len());
        }
        if !tail.is_empty() {
            let stored = group::<E, S, STORE>(s, &padded(tail), &c, &mut sums);
            sums.spill(1);
            for (out, weight) in out_tail.iter_mut().zip(stored) {
                *out = weight;
            }
        }
        sums.total
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

fn check_length(len: usize) -> Result<(), Error> {
    if len > crate::MAX_VOCAB { Err(Error::RowLength { len }) } else { Ok(()) }
}

/// The weights `E((l - m) / T)` of a row into `out`, and their exact total mass, in units of `2^-43`.
///
/// `scale` holds `m`, the row's maximum, and `T`. Logits above `m` count as `m`; NaN weighs 0.
///
/// # Errors
/// [`Error::RowLength`] over `2^20` logits, [`Error::Shape`] if `out` is not as long as the row.
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
    check_length(row.len())?;
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
/// [`Error::RowLength`] over `2^20` logits.
pub fn exp_mass<E: Element>(level: Level, row: &[E], scale: Scale) -> Result<u64, Error> {
    check_length(row.len())?;
    Ok(total_mass(level, row, scale))
}
