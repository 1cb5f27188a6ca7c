//! The weight function `E`, the crate's own exp for `x <= 0`, and the mass of a weight.

use super::threshold::{float_of, order_of, smallest};
use crate::element::{Element, LANES};
use crate::error::Error;
use crate::params::check_temperature;
use pulp::Simd;

/// `E` is exactly 0 below this, and about `2^-99.5` at it.
pub const CUT_OFF: f32 = -69.0;

/// The number of fraction bits of a mass: the weight 1 has the mass `2^43`.
pub const MASS_BITS: u32 = 43;

/// The mass of the weight 1.
pub const ONE: u64 = 1 << MASS_BITS;

/// The largest weight without mass, `2^-44`: half a unit, which rounds to even.
pub(super) const LEAST: f32 = f32::from_bits(1.0f32.to_bits() - ((MASS_BITS + 1) << 23));

// 1.5 * 2^23: adding it rounds a small float to an integer (ties to even) that then stands in the low bits.
pub(crate) const ROUND: f32 = 12_582_912.0;
// 1.5 * 2^52, which does for f64 what that does for f32.
pub(super) const ROUND_F64: f64 = 6_755_399_441_055_744.0;
// ln 2 in two steps of at most 17 significant bits, whose products with an integer of up to 7 bits are exact: there a
// multiply-add gives the same bits, fused or not, and is one operation less where it is fused.
const LN2_HI: f32 = 0.693_145_75;
const LN2_LO: f32 = 1.428_605_2e-6;
// (e^r - 1 - r) / r^2 on [-ln(2)/2, ln(2)/2], highest power first: least largest relative error of e^r, 3.1e-9.
const POLY: [f32; 5] = [1.381_454e-3, 8.368_745e-3, 4.166_839e-2, 0.166_665_21, 0.499_999_94];

/// Puts a constant into a vector. Where the compiler can see its value, it makes the vector anew at each use inside the
/// loop; hidden, it stays in a register or in memory that the instruction itself reads.
#[inline(always)]
pub(crate) fn pinned<S: Simd>(s: S, value: f32) -> S::f32s {
    s.splat_f32s(if S::IS_SCALAR { value } else { core::hint::black_box(value) })
}

/// Groups whose divisions are done together.
pub(crate) const BATCH: usize = 8;

/// A batch of logits.
pub(crate) type Batch<E> = [[E; LANES]; BATCH];

/// What is made of a batch of logits.
pub(crate) type Lanes = Batch<f32>;

/// Begins at a cache line, so that no vector of it lies in two: on the stack, arrays of floats may begin anywhere.
#[repr(align(64))]
struct Aligned<T>(T);

/// Vectors whose exps are worked out together.
const STEP: usize = 4;

/// The vectors of a batch.
#[inline(always)]
fn vectors_mut<S: Simd>(lanes: &mut Lanes) -> &mut [S::f32s] {
    S::as_mut_simd_f32s(lanes.as_flattened_mut()).0
}

/// The vectors of a batch.
#[inline(always)]
pub(crate) fn vectors<S: Simd>(lanes: &Lanes) -> &[S::f32s] {
    S::as_simd_f32s(lanes.as_flattened()).0
}

/// What turns logits into weights times a power of two: constants in vectors.
#[derive(Clone, Copy)]
pub(crate) struct Weigher<S: Simd> {
    minus_max: S::f32s,
    /// Whether -inf may come as the low number that [`Element::raw`] makes of it.
    raw: bool,
    division: Division<S::f32s>,
    cut_off: S::f32s,
    log2_e: S::f32s,
    round: S::f32s,
    minus_ln2_hi: S::f32s,
    minus_ln2_lo: S::f32s,
    poly: [S::f32s; POLY.len()],
    one: S::f32s,
}

/// How to divide by T.
#[derive(Clone, Copy)]
enum Division<V> {
    /// T is 1, as it is in most sessions of Mirostat.
    Nothing,
    /// By T.
    By(V),
}

/// What becomes of weights.
pub(crate) trait Take<E, S: Simd> {
    /// Takes a batch of logits, their exponent arguments and their weights.
    fn take(&mut self, s: S, logits: &Batch<E>, x: &Lanes, w: &Lanes);
}

impl<S: Simd> Weigher<S> {
    /// For weights times `2^power`.
    #[inline(always)]
    pub fn new(s: S, scale: Scale, power: u8) -> Self {
        let [p0, p1, p2, p3, p4] = POLY;
        Self {
            minus_max: s.splat_f32s(-scale.max),
            raw: scale.takes_raw(),
            division: match scale.temperature {
                1.0 => Division::Nothing,
                temperature => Division::By(s.splat_f32s(temperature)),
            },
            cut_off: pinned(s, CUT_OFF),
            log2_e: pinned(s, core::f32::consts::LOG2_E),
            round: pinned(s, ROUND + f32::from(power)),
            minus_ln2_hi: pinned(s, -LN2_HI),
            minus_ln2_lo: pinned(s, -LN2_LO),
            poly: [pinned(s, p0), pinned(s, p1), pinned(s, p2), pinned(s, p3), pinned(s, p4)],
            one: pinned(s, 1.0),
        }
    }

    /// Shows a row's weights times `2^power` to `taker`; the last batch is filled up with masked tokens. Unless `EXACT`, a
    /// weight below the cut-off may be something else that has no mass either, which saves a comparison; no NaN may come in
    /// then.
    ///
    /// What is long and depends on itself runs apart: a CPU has only so many operations in sight, and finds other work among them
    /// or none. So a batch's arguments are reduced first, its exps come from memory then, and beside them run the divisions
    /// of the next batch, for which a CPU has one unit that nothing else needs.
    #[inline(always)]
    pub fn over<const EXACT: bool, E: Element>(
        &self,
        s: S,
        row: &[E],
        taker: &mut impl Take<E, S>,
    ) {
        if E::UNIT.is_some() && self.raw {
            self.over_groups::<EXACT, true, E>(s, row, taker);
        } else {
            self.over_groups::<EXACT, false, E>(s, row, taker);
        }
    }

    /// The same, given how logits are loaded.
    #[inline(always)]
    fn over_groups<const EXACT: bool, const RAW: bool, E: Element>(
        &self,
        s: S,
        row: &[E],
        taker: &mut impl Take<E, S>,
    ) {
        match self.division {
            Division::Nothing => self.over_divided::<EXACT, RAW, E>(
                s,
                row,
                taker,
                #[inline(always)]
                |below| below,
            ),
            Division::By(temperature) => self.over_divided::<EXACT, RAW, E>(
                s,
                row,
                taker,
                #[inline(always)]
                |below| s.div_f32s(below, temperature),
            ),
        }
    }

    /// The same, given how to divide by T.
    #[inline(always)]
    fn over_divided<const EXACT: bool, const RAW: bool, E: Element>(
        &self,
        s: S,
        row: &[E],
        taker: &mut impl Take<E, S>,
        divide: impl Fn(S::f32s) -> S::f32s,
    ) {
        let (full, _) = row.as_chunks::<LANES>().0.as_chunks::<BATCH>();
        let rest = &row[full.len() * BATCH * LANES..];
        let mut last = [[E::MASKED; LANES]; BATCH];
        last.as_flattened_mut()[..rest.len()].copy_from_slice(rest);

        let steps = BATCH * LANES / (STEP * S::F32_LANES);
        // Two, since what is large is cleared by an instruction that takes long to begin.
        let mut arguments = Aligned([[[0.0; LANES]; BATCH]; 2]);
        let mut work = Aligned([[[0.0; LANES]; BATCH]; 3]);
        let ([x, next], [r, n, w]) = (&mut arguments.0, &mut work.0);
        let (mut x, mut next) = (x, next);
        self.arguments::<RAW, E>(s, full.first().unwrap_or(&last), x, &divide);
        for i in 0..row.len().div_ceil(BATCH * LANES) {
            let (logits, ahead) = (full.get(i).unwrap_or(&last), full.get(i + 1).unwrap_or(&last));
            self.reduce(s, x, [&mut r[..], &mut n[..]]);
            let out = vectors_mut::<S>(w).as_chunks_mut().0;
            for (i, w) in out.iter_mut().enumerate() {
                let groups = i * BATCH / steps..(i + 1) * BATCH / steps;
                self.arguments::<RAW, E>(s, &ahead[groups.clone()], &mut next[groups], &divide);
                *w = self.weights::<EXACT>(s, x, [&*r, &*n], i);
            }
            taker.take(s, logits, x, w);
            (x, next) = (next, x);
        }
    }

    /// `x_i` of logits: `(l - m) / T`, each step rounded once.
    #[inline(always)]
    fn arguments<const RAW: bool, E: Element>(
        &self,
        s: S,
        groups: &[[E; LANES]],
        x: &mut [[f32; LANES]],
        divide: impl Fn(S::f32s) -> S::f32s,
    ) {
        for (x, group) in x.iter_mut().zip(groups) {
            let unit = E::UNIT.filter(|_| RAW);
            let logits = if RAW { E::raw(group) } else { E::widen(group) };
            let lanes = S::as_mut_simd_f32s(x).0.iter_mut().zip(S::as_simd_f32s(&logits).0);
            for (x, &logit) in lanes {
                // The product with a power of two is exact, so that it makes no difference whether this is fused.
                let below = match unit {
                    Some(unit) => s.mul_add_e_f32s(logit, s.splat_f32s(unit), self.minus_max),
                    None => s.add_f32s(logit, self.minus_max),
                };
                *x = divide(below);
            }
        }
    }

    /// [`reduced`](Self::reduced) for some groups.
    #[inline(always)]
    fn reduce(&self, s: S, x: &[[f32; LANES]], [r, n]: [&mut [[f32; LANES]]; 2]) {
        for ((x, r), n) in x.iter().zip(r).zip(n) {
            let outs = S::as_mut_simd_f32s(r).0.iter_mut().zip(S::as_mut_simd_f32s(n).0);
            for ((r, n), &x) in outs.zip(S::as_simd_f32s(x).0) {
                [*r, *n] = self.reduced(s, x);
            }
        }
    }

    /// Weights times `2^power` of the vectors of a step, given their [`reduced`](Self::reduced) arguments.
    #[inline(always)]
    fn weights<const EXACT: bool>(
        &self,
        s: S,
        x: &Lanes,
        [r, n]: [&Lanes; 2],
        step: usize,
    ) -> [S::f32s; STEP] {
        let [x, r, n] = [x, r, n].map(
            #[inline(always)]
            |lanes| vectors::<S>(lanes).as_chunks().0[step],
        );
        let e = self.exp(s, r, n);
        if !EXACT {
            return e;
        }
        // The comparison also gives 0 for -inf and NaN.
        each(
            #[inline(always)]
            |i| {
                let counts = s.greater_than_or_equal_f32s(x[i], self.cut_off);
                s.select_f32s(counts, e[i], s.splat_f32s(0.0))
            },
        )
    }

    /// What an exp of `x` is worked out from: `r` in `x = n ln 2 + r`, and a float whose low bits are the integer
    /// `n + power`. `x` below [`CUT_OFF`] is taken for that. Multiply-adds are fused only where the product is exact, so
    /// that the bits are the same on every level.
    #[inline(always)]
    fn reduced(&self, s: S, x: S::f32s) -> [S::f32s; 2] {
        let x = s.max_f32s(x, self.cut_off);
        let shifted = mul_add(s, x, self.log2_e, self.round);
        let n = s.sub_f32s(shifted, self.round);
        let r = s.mul_add_e_f32s(n, self.minus_ln2_hi, x);
        [s.mul_add_e_f32s(n, self.minus_ln2_lo, r), shifted]
    }

    /// `e^x * 2^power` for [`reduced`](Self::reduced) arguments, with the same bits on every level.
    ///
    /// Each step runs over all `N` vectors before the next does. An exp is a long chain of operations, each of which waits
    /// for the one before; a CPU looks ahead too little to find the next vector's chain behind this one's.
    #[inline(always)]
    fn exp<const N: usize>(&self, s: S, r: [S::f32s; N], shifted: [S::f32s; N]) -> [S::f32s; N] {
        let [p0, p1, p2, p3, p4] = self.poly;
        // Estrin's scheme: as many operations as Horner's, but a shorter chain.
        let r2: [_; N] = each(
            #[inline(always)]
            |i| s.mul_f32s(r[i], r[i]),
        );
        let high: [_; N] = each(
            #[inline(always)]
            |i| s.add_f32s(s.mul_f32s(r2[i], p0), mul_add(s, r[i], p1, p2)),
        );
        let p: [_; N] = each(
            #[inline(always)]
            |i| s.add_f32s(s.mul_f32s(r2[i], high[i]), mul_add(s, r[i], p3, p4)),
        );
        let e: [_; N] = each(
            #[inline(always)]
            |i| s.add_f32s(mul_add(s, p[i], r2[i], r[i]), self.one),
        );
        each(
            #[inline(always)]
            |i| {
                let shifted = s.transmute_u32s_f32s(shifted[i]);
                let exponent = s.wrapping_dyn_shl_u32s(shifted, s.splat_u32s(23));
                s.transmute_f32s_u32s(s.add_u32s(s.transmute_u32s_f32s(e[i]), exponent))
            },
        )
    }
}

/// One value for each of `N` vectors, at least one. A loop, since a function of the standard library may not be inlined, and
/// then runs without the level's instructions.
#[inline(always)]
fn each<V: Copy, const N: usize>(mut f: impl FnMut(usize) -> V) -> [V; N] {
    let mut values = [f(0); N];
    let mut i = 1;
    while i < N {
        values[i] = f(i);
        i += 1;
    }
    values
}

/// Two roundings, on purpose.
#[inline(always)]
fn mul_add<S: Simd>(s: S, a: S::f32s, b: S::f32s, c: S::f32s) -> S::f32s {
    s.add_f32s(s.mul_f32s(a, b), c)
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
    if x >= CUT_OFF {
        let (s, weigher) = (pulp::Scalar, Weigher::new(pulp::Scalar, Scale::UNIT, 0));
        let [r, shifted] = weigher.reduced(s, x);
        weigher.exp(s, [r], [shifted])[0]
    } else {
        0.0
    }
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
    // The product is exact.
    (f64::from(weight) * ONE as f64 + ROUND_F64).to_bits().wrapping_sub(ROUND_F64.to_bits())
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
    const UNIT: Self = Self { max: 0.0, temperature: 1.0 };

    /// A row's maximum (finite) and a temperature (a normal positive f32).
    ///
    /// # Errors
    /// [`Error::Parameter`] outside these ranges.
    pub fn new(max: f32, temperature: f32) -> Result<Self, Error> {
        if !max.is_finite() {
            let value = crate::error::Number(f64::from(max));
            return Err(Error::Parameter { name: "max", value, expected: "finite" });
        }
        check_temperature(temperature)?;
        Ok(Self::checked(max, temperature))
    }

    /// For callers that have checked both. A maximum of -0 becomes +0, so that reports don't depend on which was first.
    pub(crate) fn checked(max: f32, temperature: f32) -> Self {
        Self { max: max + 0.0, temperature }
    }

    /// The maximum.
    pub fn max(&self) -> f32 {
        self.max
    }

    /// The lowest logit with at least this weight (at most 1).
    pub(crate) fn logit_of(&self, weight: f32) -> f32 {
        let (low, high) = (order_of(f32::MIN), order_of(self.max));
        smallest(low, high, |order| self.weight(float_of(order)) >= weight, float_of)
    }

    /// The temperature.
    pub fn temperature(&self) -> f32 {
        self.temperature
    }

    /// Whether a logit of -2^16 weighs less than what the cut-off does, as -inf does. At very low temperatures not, for which
    /// no factor fits.
    pub(crate) fn takes_raw(&self) -> bool {
        self.max + 65_536.0 >= 128.0 * self.temperature && self.temperature >= 1.0 / 256.0
    }

    /// The exponent argument `(logit - max) / temperature`.
    #[inline(always)]
    pub fn argument(&self, logit: f32) -> f32 {
        (logit - self.max) / self.temperature
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::weights_into;
    use crate::level::Level;

    #[test]
    fn a_maximum_of_zero_is_positive() {
        let max = Scale::checked(-0.0, 1.0).max();
        assert!(max == 0.0 && max.is_sign_positive());
    }

    #[test]
    fn every_temperature_divides_alike() {
        let row: Vec<f32> = (0..4096).map(|i| -((i * i) as f32) * 1.37e-5).collect();
        let mut weights = vec![0.0; row.len()];
        for level in Level::tested() {
            for temperature in [0.125, 0.5, 1.0, 2.0, 64.0, 0.75] {
                let scale = Scale::checked(0.0, temperature);
                weights_into(level, &row, scale, &mut weights);
                for (l, w) in row.iter().zip(&weights) {
                    assert_eq!(
                        weight(l / temperature).to_bits(),
                        w.to_bits(),
                        "{level} {l} {temperature}"
                    );
                }
            }
        }
    }
}
