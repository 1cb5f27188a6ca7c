//! What is added to logits.

use super::MASKED;
use super::tally::Tally;
use crate::batch::check_length as same_length;
use crate::error::{Error, NotFinite};
use crate::row::check_length;

/// What is wrong with adding a bias to a logit, if anything is.
fn check_bias(id: usize, logit: f32, bias: f32) -> Result<(), Error> {
    let id = id as u32;
    if bias.is_nan() || bias == f32::INFINITY {
        let value = if bias.is_nan() { NotFinite::NaN } else { NotFinite::PosInf };
        return Err(Error::Bias { id, value });
    }
    if logit.is_finite() && bias != MASKED && !(logit + bias).is_finite() {
        return Err(Error::Overflow { id });
    }
    Ok(())
}

fn any_left(mut after: impl Iterator<Item = f32>) -> Result<(), Error> {
    if after.all(|l| l == MASKED) {
        return Err(Error::NoAllowedToken);
    }
    Ok(())
}

/// Adds a bias to every logit; `-inf` bans. A masked token stays masked.
///
/// # Errors
/// [`Error::RowLength`], [`Error::Shape`]; [`Error::Bias`] for NaN or +inf and [`Error::Overflow`] where a sum isn't finite, at
/// the lowest such id; [`Error::NoAllowedToken`].
pub fn bias(row: &mut [f32], biases: &[f32]) -> Result<(), Error> {
    check_length(row.len())?;
    same_length("number of biases", row.len(), biases.len())?;
    for (id, (&logit, &bias)) in row.iter().zip(biases).enumerate() {
        check_bias(id, logit, bias)?;
    }
    any_left(row.iter().zip(biases).map(|(l, b)| l + b))?;
    for (logit, &bias) in row.iter_mut().zip(biases) {
        *logit += bias;
    }
    Ok(())
}

/// Adds biases to some logits; `-inf` bans. A masked token stays masked.
///
/// # Errors
/// [`Error::RowLength`], [`Error::TokenId`]; [`Error::RepeatedId`] where an id has two biases, since it would not be clear what
/// is meant; [`Error::Bias`] for NaN or +inf, [`Error::Overflow`] where a sum isn't finite; [`Error::NoAllowedToken`].
pub fn sparse_bias(row: &mut [f32], biases: &[(u32, f32)], tally: &mut Tally) -> Result<(), Error> {
    check_length(row.len())?;
    let mut ids = core::mem::take(&mut tally.touched);
    ids.clear();
    ids.extend(biases.iter().map(|&(id, _)| id));
    let checked = tally.over(&ids, row.len(), |_, counts| {
        for &(id, bias) in biases {
            if counts[id as usize] > 1 {
                return Err(Error::RepeatedId { id });
            }
            check_bias(id as usize, row[id as usize], bias)?;
        }
        Ok(())
    });
    tally.touched = ids;
    checked?;
    let values = &mut tally.values;
    values.clear();
    for &(id, bias) in biases {
        values.push(row[id as usize]);
        row[id as usize] += bias;
    }
    let left = any_left(row.iter().copied());
    if left.is_err() {
        for (&(id, _), &value) in biases.iter().zip(&*values) {
            row[id as usize] = value;
        }
    }
    left
}
