//! The weight function `E`, the crate's own exp for `x <= 0`, and the mass of a weight.

use crate::error::Error;
use crate::params::check_temperature;
use pulp::Simd;

/// `E` is exactly 0 below this, and about `2^-99.5` at it.
pub const CUT_OFF: f32 = -69.0;

/// The number of fraction bits of a mass: the weight 1 has the mass `2^43`.
pub const MASS_BITS: u32 = 43;

/// The mass of the weight 1.
pub const ONE: u64 = 1 << MASS_BITS;

// 1.5 * 2^23: adding it rounds a small float to an integer (ties to even) that then stands in the low bits.
pub(crate) const ROUND: f32 = 12_582_912.0;
// ln 2 in two steps. The first has 9 significant bits, so that its product with an integer of up to 15 bits is exact.
const LN2_HI: f32 = 0.693_359_4;
const LN2_LO: f32 = -2.121_944_4e-4;
// (e^r - 1 - r) / r^2 on [-ln(2)/2, ln(2)/2], highest power first (Cephes, expf).
const POLY: [f32; 6] = [
    1.987_569_2e-4,
    1.398_2e-3,
    8.333_452e-3,
    4.166_579_6e-2,
    1.666_666_5e-1,
    5.000_000_1e-1,
];

/// `E` of a vector. The same bits on every level: multiply, then add, never fused.
#[inline(always)]
pub(crate) fn weights<S: Simd>(s: S, x: S::f32s) -> S::f32s {
    let mul_add = |a, b, c| s.add_f32s(s.mul_f32s(a, b), c);
    let splat = |v| s.splat_f32s(v);

    let shifted = mul_add(x, splat(core::f32::consts::LOG2_E), splat(ROUND));
    let n = s.sub_f32s(shifted, splat(ROUND));
    let r = s.sub_f32s(x, s.mul_f32s(n, splat(LN2_HI)));
    let r = s.sub_f32s(r, s.mul_f32s(n, splat(LN2_LO)));

    let mut p = splat(POLY[0]);
    for c in &POLY[1..] {
        p = mul_add(p, r, splat(*c));
    }
    let e = s.add_f32s(mul_add(p, s.mul_f32s(r, r), r), splat(1.0));

    // Scale by 2^n: the integer n stands in the low bits of `shifted`; the rest is shifted out.
    let exponent = s.wrapping_dyn_shl_u32s(s.transmute_u32s_f32s(shifted), s.splat_u32s(23));
    let scaled = s.transmute_f32s_u32s(s.add_u32s(s.transmute_u32s_f32s(e), exponent));
    // A comparison, not a clamp: it also gives 0 for -inf and NaN.
    s.select_f32s(
        s.greater_than_or_equal_f32s(x, splat(CUT_OFF)),
        scaled,
        splat(0.0),
    )
}

/// `x_i` of a vector: `(l - m) / T`, each step rounded once. Where `m` is not the maximum, logits above it count as `m`.
#[inline(always)]
pub(crate) fn arguments<S: Simd>(
    s: S,
    logits: S::f32s,
    max: S::f32s,
    temperature: S::f32s,
) -> S::f32s {
    let x = s.div_f32s(s.sub_f32s(logits, max), temperature);
    // Not min: its NaN differs between instruction sets.
    s.select_f32s(
        s.greater_than_f32s(x, s.splat_f32s(0.0)),
        s.splat_f32s(0.0),
        x,
    )
}

/// The weight `E(x)` of an exponent argument `x <= 0`.
///
/// Within 1 ULP of `e^x` (see the crate docs for the measured maximum), monotone, `E(0) = 1`, exactly 0 below
/// [`CUT_OFF`] and for NaN, never subnormal. Every level of every machine gives the same bits; `tests/weight.rs` runs
/// every f32. For `x > 0` the result has no meaning, but there is no panic.
///
/// ```
/// use sortless::kernels::weight;
/// assert_eq!(weight(0.0), 1.0);
/// assert_eq!(weight(f32::NEG_INFINITY), 0.0);
/// assert!((weight(-1.0) - 0.367_879_44).abs() < 1e-7);
/// ```
#[inline(always)]
pub fn weight(x: f32) -> f32 {
    weights(pulp::Scalar, x)
}

/// The mass of a weight in `[0, 1]`: `w * 2^43` rounded to the nearest integer, ties to even.
///
/// ```
/// use sortless::kernels::{mass, ONE};
/// assert_eq!(mass(1.0), ONE);
/// assert_eq!(mass(2f32.powi(-44)), 0); // half a unit: ties go to even
/// assert_eq!(mass(2f32.powi(-43)), 1);
/// ```
#[inline(always)]
pub fn mass(weight: f32) -> u64 {
    // 1.5 * 2^52 does for f64 what ROUND does for f32; the product is exact.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    (f64::from(weight) * ONE as f64 + ROUND)
        .to_bits()
        .wrapping_sub(ROUND.to_bits())
}

/// What turns a row's logits into weights: its maximum and a temperature, both checked.
///
/// ```
/// use sortless::kernels::Scale;
/// let scale = Scale::new(3.0, 0.5)?;
/// assert_eq!(scale.argument(2.0), -2.0);
/// # Ok::<(), sortless::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    max: f32,
    temperature: f32,
}

impl Scale {
    /// A row's maximum (finite) and a temperature (a normal positive f32).
    ///
    /// # Errors
    /// [`Error::Parameter`] outside these ranges.
    pub fn new(max: f32, temperature: f32) -> Result<Self, Error> {
        if !max.is_finite() {
            let value = crate::error::Number(f64::from(max));
            return Err(Error::Parameter {
                name: "max",
                value,
                expected: "finite",
            });
        }
        check_temperature(temperature)?;
        Ok(Self::checked(max, temperature))
    }

    /// For callers that have checked both. A maximum of -0 becomes +0, so that reports don't depend on which was first.
    pub(crate) fn checked(max: f32, temperature: f32) -> Self {
        Self {
            max: max + 0.0,
            temperature,
        }
    }

    /// The maximum.
    pub fn max(&self) -> f32 {
        self.max
    }

    /// The temperature.
    pub fn temperature(&self) -> f32 {
        self.temperature
    }

    /// The exponent argument `(logit - max) / temperature`; a logit above the maximum counts as the maximum.
    #[inline(always)]
    pub fn argument(&self, logit: f32) -> f32 {
        arguments(pulp::Scalar, logit, self.max, self.temperature)
    }

    /// The weight of a logit.
    #[inline(always)]
    pub fn weight(&self, logit: f32) -> f32 {
        weight(self.argument(logit))
    }

    /// The mass of a logit.
    #[inline(always)]
    pub fn mass(&self, logit: f32) -> u64 {
        mass(self.weight(logit))
    }
}
