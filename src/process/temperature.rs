//! Temperature, in place.

use super::MASKED;
use crate::error::Error;
use crate::params::check_temperature;
use crate::row::check_length;

/// Divides the logits by a temperature, a normal positive f32, after subtracting their maximum: `(l - m) / T`, so that nothing
/// overflows upwards. What would fall below the lowest f32 stays at it: only masked tokens are masked. Sampling the result at
/// temperature 1 is sampling the row at `T`.
///
/// # Errors
/// [`Error::RowLength`], [`Error::Parameter`]; [`Error::NotFinite`] for a row with NaN or +inf, which has no maximum to
/// subtract; [`Error::NoAllowedToken`].
pub fn temperature(row: &mut [f32], temperature: f32) -> Result<(), Error> {
    check_length(row.len())?;
    check_temperature(temperature)?;
    let max = crate::kernels::max(crate::Level::best(), row)?;
    if max == MASKED {
        return Err(Error::NoAllowedToken);
    }
    for logit in row {
        let scaled = ((*logit - max) / temperature).max(f32::MIN);
        *logit = if *logit == MASKED { MASKED } else { scaled };
    }
    Ok(())
}
