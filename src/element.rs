//! The number types that a row can have, and how a group of 16 of them is loaded.

use crate::error::NotFinite;
use half::{bf16, f16};

/// Virtual lanes: every kernel works on groups of 16, whatever the machine's vectors hold.
pub(crate) const LANES: usize = 16;

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for half::f16 {}
    impl Sealed for half::bf16 {}
}

/// A logit's type: `f32`, [`half::f16`] or [`half::bf16`]. Sealed.
///
/// f16 and bf16 rows are read in place and widen to f32 exactly. Rows that are held as bits can be
/// viewed without a copy:
///
/// ```
/// let bits: &[u16] = &[0x3c00, 0x4000, 0xfc00];
/// let row: &[half::f16] = bytemuck::cast_slice(bits);
/// assert_eq!(sortless::kernels::max(sortless::Level::best(), row), Ok(2.0));
/// ```
pub trait Element: Copy + Send + Sync + core::fmt::Debug + sealed::Sealed + 'static {
    /// Minus infinity: a masked token.
    const MASKED: Self;

    /// The exact f32 value.
    fn to_f32(self) -> f32;

    /// The exact f32 values of a group that holds neither NaN nor +inf.
    #[doc(hidden)]
    fn widen(group: &[Self; LANES]) -> [f32; LANES];

    /// What the values of [`raw`](Self::raw) are multiplied by to be those of [`widen`](Self::widen), where they are others.
    #[doc(hidden)]
    const UNIT: Option<f32> = None;

    /// As [`widen`](Self::widen), in fewer operations: over `UNIT`, and -inf may be `-2^16` over that. That does where so
    /// low a logit has no mass, [`Scale::takes_raw`](crate::kernels::Scale).
    #[doc(hidden)]
    #[inline(always)]
    fn raw(group: &[Self; LANES]) -> [f32; LANES] {
        Self::widen(group)
    }

    /// A group's order keys: floats that compare as the values do (not finite ones aside) and cost
    /// less to make than the values.
    #[doc(hidden)]
    fn keys(group: &[Self; LANES]) -> [f32; LANES];

    /// The key of -inf.
    #[doc(hidden)]
    const KEY_MIN: f32;

    /// The bits of +inf, for values that have 16.
    #[doc(hidden)]
    const HALF_INFINITY: Option<u16> = None;

    /// The bits of values that have 16, and of no others.
    #[doc(hidden)]
    fn half_bits(_: &[Self]) -> &[u16] {
        &[]
    }

    /// The value of a key.
    #[doc(hidden)]
    fn from_key(key: f32) -> f32;

    /// The smallest key whose value is at least `logit`; a key above all others where there is none.
    #[doc(hidden)]
    fn key_at_least(logit: f32) -> f32;

    /// What is wrong with this value, if anything is.
    #[doc(hidden)]
    fn fault(self) -> Option<NotFinite> {
        let value = self.to_f32();
        if value.is_nan() {
            Some(NotFinite::NaN)
        } else if value == f32::INFINITY {
            Some(NotFinite::PosInf)
        } else {
            None
        }
    }
}

impl Element for f32 {
    const MASKED: Self = f32::NEG_INFINITY;
    const KEY_MIN: f32 = f32::NEG_INFINITY;

    #[inline(always)]
    fn to_f32(self) -> f32 {
        self
    }

    #[inline(always)]
    fn widen(group: &[Self; LANES]) -> [f32; LANES] {
        *group
    }

    #[inline(always)]
    fn keys(group: &[Self; LANES]) -> [f32; LANES] {
        *group
    }

    #[inline(always)]
    fn from_key(key: f32) -> f32 {
        key
    }

    #[inline(always)]
    fn key_at_least(logit: f32) -> f32 {
        logit
    }
}

impl Element for bf16 {
    const MASKED: Self = bf16::NEG_INFINITY;
    const KEY_MIN: f32 = f32::NEG_INFINITY;
    const HALF_INFINITY: Option<u16> = Some(bf16::INFINITY.to_bits());

    #[inline(always)]
    fn half_bits(values: &[Self]) -> &[u16] {
        bytemuck::cast_slice(values)
    }

    #[inline(always)]
    fn to_f32(self) -> f32 {
        f32::from_bits(u32::from(self.to_bits()) << 16)
    }

    #[inline(always)]
    fn widen(group: &[Self; LANES]) -> [f32; LANES] {
        high_halves(group.map(bf16::to_bits))
    }

    #[inline(always)]
    fn keys(group: &[Self; LANES]) -> [f32; LANES] {
        high_halves(group.map(bf16::to_bits))
    }

    #[inline(always)]
    fn from_key(key: f32) -> f32 {
        key
    }

    #[inline(always)]
    fn key_at_least(logit: f32) -> f32 {
        logit
    }
}

impl Element for f16 {
    const UNIT: Option<f32> = Some(REBIAS);
    const MASKED: Self = f16::NEG_INFINITY;
    const KEY_MIN: f32 = f32::from_bits((f16::NEG_INFINITY.to_bits() as u32) << 16);
    const HALF_INFINITY: Option<u16> = Some(f16::INFINITY.to_bits());

    #[inline(always)]
    fn half_bits(values: &[Self]) -> &[u16] {
        bytemuck::cast_slice(values)
    }

    #[inline(always)]
    fn to_f32(self) -> f32 {
        f16_bits_to_f32(u32::from(self.to_bits()))
    }

    #[inline(always)]
    fn widen(group: &[Self; LANES]) -> [f32; LANES] {
        Self::raw(group).map(|raw| {
            let value = raw * REBIAS;
            if value > -65_536.0 { value } else { f32::NEG_INFINITY }
        })
    }

    // The bits in their places, with the sign beside copies of itself. -inf comes out as -2^16, which no finite value is.
    #[inline(always)]
    fn raw(group: &[Self; LANES]) -> [f32; LANES] {
        group.map(|v| {
            let placed = (i32::from(v.to_bits().cast_signed()) << 13).cast_unsigned();
            f32::from_bits(placed & 0x8fff_e000)
        })
    }

    // An f16 in the upper half of an f32 is another number, but sign and magnitude stay where
    // they were, so it compares the same; only a NaN becomes a number, one beyond the infinities.
    #[inline(always)]
    fn keys(group: &[Self; LANES]) -> [f32; LANES] {
        high_halves(group.map(f16::to_bits))
    }

    #[inline(always)]
    fn from_key(key: f32) -> f32 {
        f16_bits_to_f32(key.to_bits() >> 16)
    }

    fn key_at_least(logit: f32) -> f32 {
        let mut near = f16::from_f32(logit);
        if near.to_f32() < logit {
            near = next_up(near);
        }
        f32::from_bits(u32::from(near.to_bits()) << 16)
    }
}

/// The numbers with these upper halves.
#[inline(always)]
pub(crate) fn high_halves(bits: [u16; LANES]) -> [f32; LANES] {
    bits.map(|b| f32::from_bits(u32::from(b) << 16))
}

/// What an f16's exponent in the place of an f32's is off by, as a factor: 2^112.
const REBIAS: f32 = f32::from_bits((127 + 112) << 23);

/// Widens by integer operations: rebias the exponent by a multiplication, which also makes
/// subnormals right, then put infinities and NaN back.
#[inline(always)]
fn f16_bits_to_f32(bits: u32) -> f32 {
    let magnitude = (bits & 0x7fff) << 13;
    let scaled = f32::from_bits(magnitude) * REBIAS;
    let wide = if magnitude >= 0x7c00 << 13 { magnitude | 0x7f80_0000 } else { scaled.to_bits() };
    f32::from_bits(wide | ((bits & 0x8000) << 16))
}

fn next_up(value: f16) -> f16 {
    let bits = value.to_bits();
    f16::from_bits(match bits {
        0x8000 => 0x0001,
        0x8001.. => bits - 1,
        _ => bits + 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_f16_and_bf16_widens_exactly() {
        for bits in 0..=u16::MAX {
            let (h, b) = (f16::from_bits(bits), bf16::from_bits(bits));
            // The half crate quiets signalling NaNs on some machines; that they are NaN is all that matters.
            let same = |ours: f32, theirs: f32| {
                ours.to_bits() == theirs.to_bits() || (ours.is_nan() && theirs.is_nan())
            };
            assert!(same(Element::to_f32(h), f16::to_f32_const(h)), "f16 {bits:#06x}");
            assert!(same(Element::to_f32(b), bf16::to_f32_const(b)), "bf16 {bits:#06x}");
            if h.fault().is_none() {
                assert_eq!(f16::widen(&[h; 16])[3].to_bits(), f16::to_f32_const(h).to_bits());
            }
            assert!(same(bf16::widen(&[b; 16])[3], bf16::to_f32_const(b)));
        }
    }

    #[test]
    fn f16_keys_order_as_the_values() {
        let key = |bits: u16| f16::keys(&[f16::from_bits(bits); 16])[0];
        let mut finite: Vec<f16> =
            (0..=u16::MAX).map(f16::from_bits).filter(|v| v.fault().is_none()).collect();
        finite.sort_by(|a, b| Element::to_f32(*a).partial_cmp(&Element::to_f32(*b)).unwrap());
        for pair in finite.windows(2) {
            let (a, b) = (pair[0], pair[1]);
            assert_eq!(
                Element::to_f32(a).partial_cmp(&Element::to_f32(b)),
                key(a.to_bits()).partial_cmp(&key(b.to_bits()))
            );
        }
        for value in finite {
            let k = key(value.to_bits());
            assert_eq!(f16::from_key(k), Element::to_f32(value));
            assert_eq!(f16::key_at_least(f16::from_key(k)), k);
        }
    }

    #[test]
    fn a_threshold_between_two_f16_takes_the_upper_one() {
        for (logit, want) in [
            (1.0001f32, 0x3c01),
            (-1.0001, 0xbc00),
            (1e-9, 0x0001),
            (-1e-9, 0x8000),
            (1e6, 0x7c00),
            (-1e6, 0xfbff),
        ] {
            assert_eq!(f16::key_at_least(logit), f32::from_bits(want << 16), "{logit}");
        }
        assert_eq!(f16::key_at_least(f32::NEG_INFINITY), f16::KEY_MIN);
    }
}
