//! The public kernels, and the bounds that the samplers trust, on every level.

use super::bytes::{Bytes, step_f32};
use super::params::temperature;
use super::row::{Frame, Make, length, row, show};
use crate::error::Error;
use crate::kernels::{
    BLOCK, Candidate, Scale, argmax_first, cheap_bounds, collect, exp_mass, exp_weights,
    exponent_histogram, max,
};
use crate::level::Level;
use crate::reference;
use half::{bf16, f16};

/// Checks the kernels on the case that these bytes say.
///
/// # Errors
/// The case in full, and what is wrong with it.
pub fn kernels(bytes: &[u8]) -> Result<(), String> {
    super::check(bytes, [case::<f32>, case::<f16>, case::<bf16>])
}

fn case<E: Make>(b: &mut Bytes<'_>) -> Result<(), String> {
    let temperature = temperature(b);
    let frame = Frame::read(b, temperature);
    let len = length(b, super::LONGEST);
    let row = row::<E>(b, frame, len);
    let found = reference::max(&row);
    // The row's maximum; now and then one above it, or one below it, which is refused.
    let top = found.as_ref().copied().unwrap_or(frame.max);
    let top = match b.below(8) {
        0 => step_f32(top, b.step()),
        1 => top + f32::from(b.u8()),
        _ => top,
    };
    let threshold = match b.below(4) {
        0 => step_f32(row.first().map_or(0.0, |v| v.to_f32()), b.step()),
        1 => step_f32(top, b.step()),
        2 => b.of(&[f32::NEG_INFINITY, f32::INFINITY, f32::MIN, f32::NAN, 0.0, -0.0]),
        _ if row.is_empty() => 0.0,
        _ => row[b.below(row.len())].to_f32(),
    };
    for level in Level::tested() {
        let wrong = |what: &str, got: &dyn core::fmt::Debug, want: &dyn core::fmt::Debug| {
            Err(format!(
                "{level}: {what} is {got:?}, not {want:?}; max {top:?}, temperature \
                 {temperature:?}, threshold {threshold:?}, {}",
                show(&row)
            ))
        };
        let got = max(level, &row);
        if !same(&got, &found, |v| v.to_bits()) {
            return wrong("max", &got, &found);
        }
        let (got, want) = (argmax_first(level, &row), reference::argmax(&row));
        if got != want {
            return wrong("argmax_first", &got, &want);
        }
        collects(level, &row, threshold, &found).or_else(|(g, w)| wrong("collect", &g, &w))?;
        if let Ok(scale) = Scale::new(top, temperature) {
            weighs(level, &row, scale, &found).or_else(|(g, w)| wrong("weights", &g, &w))?;
        }
    }
    Ok(())
}

/// What was found, and what should have been.
type Difference = (String, String);

fn differ(what: &str, got: impl core::fmt::Debug, want: impl core::fmt::Debug) -> Difference {
    (format!("{what} {got:?}"), format!("{want:?}"))
}

fn same<T, U: PartialEq>(
    a: &Result<T, Error>,
    b: &Result<T, Error>,
    bits: impl Fn(&T) -> U,
) -> bool {
    match (a, b) {
        (Ok(a), Ok(b)) => bits(a) == bits(b),
        (Err(a), Err(b)) => a == b,
        _ => false,
    }
}

fn collects<E: Make>(
    level: Level,
    row: &[E],
    threshold: f32,
    found: &Result<f32, Error>,
) -> Result<(), Difference> {
    let before = vec![Candidate::new(5, 5.0)];
    let mut list = before.clone();
    let outcome = collect(level, row, threshold, &mut list);
    if threshold.is_nan() {
        let refused = matches!(outcome, Err(Error::Parameter { name: "threshold", .. }));
        return if refused && list == before { Ok(()) } else { Err(differ("", outcome, "NaN")) };
    }
    match (outcome, found) {
        (Ok(()), Ok(_)) => {
            let key = |(id, l): (u32, f32)| (id, (l + 0.0).to_bits());
            let got: Vec<_> = list.iter().map(|c| key((c.id(), c.logit()))).collect();
            let want: Vec<_> = reference::at_least(row, threshold).into_iter().map(key).collect();
            if got != want { Err(differ("tokens", got, want)) } else { Ok(()) }
        }
        (Err(got), Err(want)) if got == *want && list == before => Ok(()),
        (got, want) => Err(differ("", got, want)),
    }
}

fn weighs<E: Make>(
    level: Level,
    row: &[E],
    scale: Scale,
    found: &Result<f32, Error>,
) -> Result<(), Difference> {
    let before = vec![-7.0f32; row.len()];
    let mut out = before.clone();
    let weighed = exp_weights(level, row, scale, &mut out);
    let total = exp_mass(level, row, scale);
    let histogram = exponent_histogram(level, row, scale);
    let refused = match found {
        Err(error) => Some(error.clone()),
        Ok(max) if *max > scale.max() => Some(Error::Parameter {
            name: "max",
            value: crate::Number(f64::from(scale.max())),
            expected: "the row's maximum",
        }),
        Ok(_) => None,
    };
    if let Some(error) = refused {
        if weighed != Err(error.clone()) || out != before {
            return Err(differ("exp_weights", weighed, error));
        }
        if total != Err(error.clone()) {
            return Err(differ("exp_mass", total, error));
        }
        if histogram != Err(error.clone()) {
            return Err(differ("exponent_histogram", histogram, error));
        }
        return Ok(());
    }
    let (max, temperature) = (scale.max(), scale.temperature());
    let want = reference::total_mass(row, max, temperature);
    if weighed != Ok(want) || total != Ok(want) {
        return Err(differ("total", (weighed, total), want));
    }
    let weights = reference::weights(row, max, temperature);
    if let Some(i) = (0..row.len()).find(|&i| out[i].to_bits() != weights[i].to_bits()) {
        return Err(differ("weight", (i, out[i]), weights[i]));
    }
    let (counts, masses) = reference::exponent_histogram(row, max, temperature);
    match &histogram {
        Ok(h) if *h.counts() == counts && *h.masses() == masses => {}
        _ => return Err(differ("histogram", histogram, (counts, masses))),
    }
    let mut short = vec![0.0; row.len() + 1];
    if !matches!(exp_weights(level, row, scale, &mut short), Err(Error::Shape { .. })) {
        return Err(differ("exp_weights into another length", "Ok", "Err(Shape)"));
    }
    // The bounds are for checked rows, at their own maximum.
    if *found == Ok(max)
        && let Some((low, high)) = cheap_bounds(level, row, scale, 0..row.len().div_ceil(BLOCK))
        && !(low..=high).contains(&want)
    {
        return Err(differ("bounds", (low, high), want));
    }
    Ok(())
}
