//! Penalties on what has been said before.

use super::tally::Tally;
use crate::error::{Error, Number};
use crate::row::check_length;

/// The repetition penalty of Keskar et al. (CTRL, 2019): a logit of the history is divided by `penalty` if it is positive and
/// multiplied if it is negative, once, however often the token occurs. `penalty` is at least 1 and finite; 1 changes nothing.
///
/// The history is whatever slice the caller passes: the prompt, the output, the last n.
///
/// # Errors
/// [`Error::RowLength`], [`Error::Parameter`], [`Error::TokenId`], [`Error::Overflow`].
pub fn repetition_penalty(
    row: &mut [f32],
    history: &[u32],
    penalty: f32,
    tally: &mut Tally,
) -> Result<(), Error> {
    check_length(row.len())?;
    if !(1.0..f32::INFINITY).contains(&penalty) {
        return Err(parameter("repetition penalty", penalty, "at least 1 and finite"));
    }
    penalize(
        row,
        history,
        tally,
        |logit, _| {
            if logit > 0.0 { logit / penalty } else { logit * penalty }
        },
    )
}

/// Presence and frequency penalties: subtracts `presence` from the logit of each token of the history, and `frequency` for each
/// time that it occurs. Negative ones reward. Formed in f64 and rounded once.
///
/// # Errors
/// [`Error::RowLength`]; [`Error::Parameter`] for a penalty that is not finite; [`Error::TokenId`], [`Error::Overflow`].
///
/// ```
/// # use sortless::process::{Tally, presence_frequency_penalty};
/// let mut row = [1.0f32, 1.0];
/// presence_frequency_penalty(&mut row, &[1, 1, 1], 0.5, 0.25, &mut Tally::new())?;
/// assert_eq!(row, [1.0, -0.25]);
/// # Ok::<(), sortless::Error>(())
/// ```
pub fn presence_frequency_penalty(
    row: &mut [f32],
    history: &[u32],
    presence: f32,
    frequency: f32,
    tally: &mut Tally,
) -> Result<(), Error> {
    check_length(row.len())?;
    for (name, value) in [("presence penalty", presence), ("frequency penalty", frequency)] {
        if !value.is_finite() {
            return Err(parameter(name, value, "finite"));
        }
    }
    let (presence, frequency) = (f64::from(presence), f64::from(frequency));
    penalize(row, history, tally, |logit, count| {
        (f64::from(logit) - (presence + f64::from(count) * frequency)) as f32
    })
}

/// Replaces the logit of each distinct token of a history by what `f` makes of it and the token's count; of -inf it makes -inf.
fn penalize(
    row: &mut [f32],
    history: &[u32],
    tally: &mut Tally,
    f: impl Fn(f32, u32) -> f32,
) -> Result<(), Error> {
    tally.over(history, row.len(), |ids, counts| {
        for &id in ids {
            let logit = row[id as usize];
            if logit.is_finite() && !f(logit, counts[id as usize]).is_finite() {
                return Err(Error::Overflow { id });
            }
        }
        for &id in ids {
            let logit = &mut row[id as usize];
            *logit = f(*logit, counts[id as usize]);
        }
        Ok(())
    })
}

fn parameter(name: &'static str, value: f32, expected: &'static str) -> Error {
    let value = Number(f64::from(value));
    Error::Parameter { name, value, expected }
}
