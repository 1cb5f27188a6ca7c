//! The parts that requests have in common: parameters, state, row.

use super::error::JsonError;
use super::fields::{Fields, narrow, problem, wrong};
use crate::error::Error;
use crate::mirostat::{Config, State, Version};
use serde_json::Value;

/// A row as a request gives it.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// Logits; a masked one is -inf.
    Logits(Vec<f32>),
    /// Weights.
    Weights(Vec<f32>),
}

pub(super) fn parameters(fields: &mut Fields) -> Result<(Config, Version), JsonError> {
    let version = match fields.text("version")?.as_str() {
        "v1" => Version::V1,
        "v2" => Version::V2,
        _ => return Err(problem(fields.path("version"), "must be \"v1\" or \"v2\"")),
    };
    let config = config(fields)?;
    Ok((config, version))
}

fn config(fields: &mut Fields) -> Result<Config, JsonError> {
    let checked = |config: Result<Config, Error>, fields: &Fields| {
        config.map_err(|error| {
            let name = if let Error::Parameter { name, .. } = error { name } else { "tau" };
            JsonError::Refused { field: fields.path(name), error }
        })
    };
    let tau = fields.number("tau")?;
    let mut config = checked(Config::new(tau), fields)?;
    if let Some(eta) = fields.optional_number("eta")? {
        config = checked(config.with_eta(eta), fields)?;
    }
    if let Some(mu) = fields.optional_number("initial_mu")? {
        config = checked(config.with_initial_mu(mu), fields)?;
    }
    if let Some(m) = fields.optional("m") {
        let m = m.as_u64().and_then(|m| usize::try_from(m).ok());
        let wrong = || problem(fields.path("m"), "must be an integer of at least 2");
        config = checked(config.with_m(m.ok_or_else(wrong)?), fields)?;
    }
    if let Some(temperature) = fields.optional_number("temperature")? {
        let temperature = narrow(temperature, || fields.path("temperature"))?;
        config = checked(config.with_temperature(temperature), fields)?;
    }
    Ok(config)
}

pub(super) fn state(fields: &mut Fields) -> Result<State, JsonError> {
    Ok(State { mu: fields.number("state_mu")?, steps: fields.integer("state_steps")? })
}

pub(super) fn row(fields: &mut Fields) -> Result<Input, JsonError> {
    let logits = fields.optional("logits");
    let weights = fields.optional("weights");
    match (logits, weights) {
        (Some(list), None) => {
            let path = fields.path("logits");
            Ok(Input::Logits(numbers(list, &path, true)?))
        }
        (None, Some(list)) => {
            let path = fields.path("weights");
            Ok(Input::Weights(numbers(list, &path, false)?))
        }
        (None, None) => Err(problem(fields.path("logits"), "or weights is missing")),
        (Some(_), Some(_)) => Err(problem(fields.path("logits"), "and weights exclude each other")),
    }
}

fn numbers(list: Value, path: &str, masks: bool) -> Result<Vec<f32>, JsonError> {
    let Value::Array(list) = list else {
        return Err(wrong(path, "a list", &list));
    };
    let expected = if masks { "a number, null or \"-inf\"" } else { "a number" };
    let number = |(i, value): (usize, Value)| match &value {
        Value::Null if masks => Ok(f32::NEG_INFINITY),
        Value::String(text) if masks && text == "-inf" => Ok(f32::NEG_INFINITY),
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or(f64::INFINITY);
            narrow(number, || format!("{path}[{i}]"))
        }
        other => Err(wrong(&format!("{path}[{i}]"), expected, other)),
    };
    list.into_iter().enumerate().map(number).collect()
}
