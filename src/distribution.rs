//! Distributions as plain lists of numbers, for whoever draws or measures without a sampler.

use crate::batch::check_length;
use crate::element::Element;
use crate::error::{Error, Number};
use crate::fraction;
use crate::kernels::{Scale, exp_weights};
use crate::level::Level;
use crate::measure::Measure;
use crate::params::check_temperature;
use crate::report;
use crate::row::{Row, check_draw};
use crate::weights;

/// The probabilities of a row of logits at a temperature (a normal positive f32) into `out`, which is as long: each
/// token's mass over the total, as reports give it.
///
/// # Errors
/// [`Error::Parameter`] for another temperature; what is wrong with the row; [`Error::Shape`]. `out` is untouched then.
///
/// ```
/// let mut out = [0.0; 3];
/// sortless::probabilities(&[1.0f32, f32::NEG_INFINITY, 1.0], 1.0, &mut out)?;
/// assert_eq!(out, [0.5, 0.0, 0.5]);
/// # Ok::<(), sortless::Error>(())
/// ```
pub fn probabilities<E: Element>(
    row: &[E],
    temperature: f32,
    out: &mut [f64],
) -> Result<(), Error> {
    check_temperature(temperature)?;
    let level = Level::best();
    let scale: Scale = Row::new(row, temperature, 0.0, level, None)?.scale;
    check_length("length of the probabilities", row.len(), out.len())?;
    let mut weights = vec![0.0; row.len()];
    let total = exp_weights(level, row, scale, &mut weights)?;
    for (out, weight) in out.iter_mut().zip(weights) {
        *out = report::share(crate::kernels::mass(weight), total);
    }
    Ok(())
}

/// The probabilities of a row of weights (finite, at least 0, not all 0) into `out`, which is as long.
///
/// # Errors
/// What is wrong with the row; [`Error::Shape`]. `out` is untouched then.
///
/// ```
/// let mut out = [0.0; 3];
/// sortless::normalize_weights(&[3.0, 0.0, 1.0], &mut out)?;
/// assert!((out[0] - 0.75).abs() < 1e-7 && out[1] == 0.0);
/// # Ok::<(), sortless::Error>(())
/// ```
pub fn normalize_weights(weights: &[f32], out: &mut [f64]) -> Result<(), Error> {
    let measure = Measure::Weights(weights::check(weights)?);
    check_length("length of the probabilities", weights.len(), out.len())?;
    let total = weights.iter().map(|&v| measure.mass(v)).sum();
    for (out, &v) in out.iter_mut().zip(weights) {
        *out = report::share(measure.mass(v), total);
    }
    Ok(())
}

/// The surprise of a probability in (0, 1], in bits: `-log2(p)`.
///
/// # Errors
/// [`Error::Parameter`] outside that range.
///
/// ```
/// assert_eq!(sortless::surprise(0.25)?, 2.0);
/// assert!(sortless::surprise(0.0).is_err());
/// # Ok::<(), sortless::Error>(())
/// ```
pub fn surprise(probability: f64) -> Result<f64, Error> {
    if 0.0 < probability && probability <= 1.0 {
        return Ok(-libm::log2(probability) + 0.0);
    }
    Err(Error::Parameter { name: "probability", value: Number(probability), expected: "in (0, 1]" })
}

/// Draws from a list of distinct ids, in the order given, by the weights of a row: the first whose cumulative mass exceeds
/// `u` of the list's, for `u` in `[0, 1)`. Masses are those of the row, so an id that weighs nothing beside the row's best is never drawn.
///
/// # Errors
/// What is wrong with the row; [`Error::TokenId`] outside it; [`Error::RepeatedId`]; [`Error::NoAllowedToken`] if no id has
/// mass; [`Error::Draw`].
///
/// ```
/// let weights = [1.0, 2.0, 4.0, 0.0];
/// assert_eq!(sortless::draw_from(&weights, &[3, 1, 0], 0.6)?, 1);
/// assert_eq!(sortless::draw_from(&weights, &[3, 1, 0], 0.7)?, 0);
/// # Ok::<(), sortless::Error>(())
/// ```
pub fn draw_from(weights: &[f32], ids: &[u32], u: f64) -> Result<u32, Error> {
    let measure = Measure::Weights(weights::check(weights)?);
    let len = weights.len();
    let mut seen = vec![false; len];
    let mut total = 0;
    for &id in ids {
        let seen = seen.get_mut(id as usize).ok_or(Error::TokenId { id, len })?;
        if core::mem::replace(seen, true) {
            return Err(Error::RepeatedId { id });
        }
        total += measure.mass(weights[id as usize]);
    }
    if total == 0 {
        return Err(Error::NoAllowedToken);
    }
    check_draw(u)?;
    let target = fraction::floor(u, total);
    let mut sum = 0;
    let drawn = ids.iter().find(|&&id| {
        sum += measure.mass(weights[id as usize]);
        sum > target
    });
    drawn.copied().ok_or(Error::NoAllowedToken)
}
