//! The requests: how they are read, and what they do.

use super::error::JsonError;
use super::fields::{Fields, narrow, problem, wrong};
use super::response::{BatchResponse, InitResponse, PreviewResponse, ReplayResponse, StepResponse};
use crate::error::Error;
use crate::mirostat::{Config, Session, State, Step, Version};
use crate::sampler::Scratch;
use serde_json::Value;

/// A row as a request gives it.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// Logits; a masked one is -inf.
    Logits(Vec<f32>),
    /// Weights.
    Weights(Vec<f32>),
}

/// Asks for the state that a session begins with.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct InitRequest {
    /// The parameters.
    pub config: Config,
    /// The version.
    pub version: Version,
}

/// Asks for one step.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct StepRequest {
    /// The parameters.
    pub config: Config,
    /// The version.
    pub version: Version,
    /// The state before the step.
    pub state: State,
    /// The row.
    pub row: Input,
    /// The draw.
    pub uniform: f64,
    path: String,
}

/// Asks for several steps of one session.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ReplayRequest {
    /// The parameters.
    pub config: Config,
    /// The version.
    pub version: Version,
    /// The state before the first step.
    pub state: State,
    /// The rows and their draws.
    pub rows: Vec<(Input, f64)>,
}

/// Asks for a step of each of several sessions.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct BatchRequest {
    /// Their steps.
    pub rows: Vec<StepRequest>,
}

/// Asks what a step would draw from.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PreviewRequest {
    /// The parameters.
    pub config: Config,
    /// The version.
    pub version: Version,
    /// The state before the step.
    pub state: State,
    /// The row.
    pub row: Input,
}

impl InitRequest {
    /// Reads a request.
    ///
    /// # Errors
    /// [`JsonError`], as for all requests.
    pub fn parse(bytes: &[u8]) -> Result<Self, JsonError> {
        let mut fields = Fields::parse(bytes)?;
        let (config, version) = parameters(&mut fields)?;
        fields.finish()?;
        Ok(Self { config, version })
    }

    /// The state.
    pub fn run(&self) -> InitResponse {
        let state = Session::new(self.config, self.version).state();
        InitResponse { state_mu: state.mu, state_steps: state.steps }
    }
}

impl StepRequest {
    /// Reads a request.
    ///
    /// # Errors
    /// [`JsonError`].
    pub fn parse(bytes: &[u8]) -> Result<Self, JsonError> {
        Self::read(Fields::parse(bytes)?, true)
    }

    /// Reads a request that has no state: a session's first step.
    ///
    /// # Errors
    /// [`JsonError`].
    pub fn parse_one_shot(bytes: &[u8]) -> Result<Self, JsonError> {
        Self::read(Fields::parse(bytes)?, false)
    }

    fn read(mut fields: Fields, with_state: bool) -> Result<Self, JsonError> {
        let (config, version) = parameters(&mut fields)?;
        let state =
            if with_state { state(&mut fields)? } else { Session::new(config, version).state() };
        let row = row(&mut fields)?;
        let uniform = fields.number("uniform")?;
        let path = fields.path("");
        fields.finish()?;
        Ok(Self { config, version, state, row, uniform, path })
    }

    /// Takes the step.
    ///
    /// # Errors
    /// [`JsonError::Refused`].
    pub fn run(&self) -> Result<StepResponse, JsonError> {
        let mut session = resume(self.config, self.version, self.state, &self.path)?;
        let step = take(&mut session, &self.row, self.uniform, &self.path, &mut Scratch::new())?;
        Ok(StepResponse::new(&step, session.state()))
    }
}

impl ReplayRequest {
    /// Reads a request.
    ///
    /// # Errors
    /// [`JsonError`].
    pub fn parse(bytes: &[u8]) -> Result<Self, JsonError> {
        let mut fields = Fields::parse(bytes)?;
        let (config, version) = parameters(&mut fields)?;
        let state = state(&mut fields)?;
        let rows = fields.objects("rows")?.into_iter().map(|mut fields| {
            let row = row(&mut fields)?;
            let uniform = fields.number("uniform")?;
            fields.finish()?;
            Ok((row, uniform))
        });
        let rows = rows.collect::<Result<_, JsonError>>()?;
        fields.finish()?;
        Ok(Self { config, version, state, rows })
    }

    /// Takes the steps.
    ///
    /// # Errors
    /// [`JsonError::Refused`], for the first step that fails.
    pub fn run(&self) -> Result<ReplayResponse, JsonError> {
        let mut session = resume(self.config, self.version, self.state, "")?;
        let mut scratch = Scratch::new();
        let mut steps = Vec::with_capacity(self.rows.len());
        for (i, (row, uniform)) in self.rows.iter().enumerate() {
            let path = format!("rows[{i}].");
            let step = take(&mut session, row, *uniform, &path, &mut scratch)?;
            steps.push(StepResponse::new(&step, session.state()));
        }
        Ok(ReplayResponse::new(steps, session.state()))
    }
}

impl BatchRequest {
    /// Reads a request.
    ///
    /// # Errors
    /// [`JsonError`].
    pub fn parse(bytes: &[u8]) -> Result<Self, JsonError> {
        let mut fields = Fields::parse(bytes)?;
        let rows = fields.objects("rows")?.into_iter().map(|f| StepRequest::read(f, true));
        let rows = rows.collect::<Result<_, _>>()?;
        fields.finish()?;
        Ok(Self { rows })
    }

    /// Takes the steps.
    ///
    /// # Errors
    /// [`JsonError::Refused`], for the first row that fails.
    pub fn run(&self) -> Result<BatchResponse, JsonError> {
        let rows = self.rows.iter().map(StepRequest::run).collect::<Result<_, _>>()?;
        Ok(BatchResponse { rows })
    }
}

impl PreviewRequest {
    /// Reads a request.
    ///
    /// # Errors
    /// [`JsonError`].
    pub fn parse(bytes: &[u8]) -> Result<Self, JsonError> {
        let mut fields = Fields::parse(bytes)?;
        let (config, version) = parameters(&mut fields)?;
        let state = state(&mut fields)?;
        let row = row(&mut fields)?;
        fields.finish()?;
        Ok(Self { config, version, state, row })
    }

    /// Looks.
    ///
    /// # Errors
    /// [`JsonError::Refused`].
    pub fn run(&self) -> Result<PreviewResponse, JsonError> {
        let session = resume(self.config, self.version, self.state, "")?;
        let mut scratch = Scratch::new();
        let preview = match &self.row {
            Input::Logits(row) => session.preview(row, &mut scratch),
            Input::Weights(row) => session.preview_weights(row, &mut scratch),
        };
        let preview = preview.map_err(|error| refused(error, &self.row, ""))?;
        Ok(PreviewResponse {
            vocabulary: preview.vocabulary,
            kept_tokens: preview.kept,
            retained_mass: preview.retained,
            expected_surprise: preview.expected_surprise,
            state_mu: preview.mu,
        })
    }
}

fn parameters(fields: &mut Fields) -> Result<(Config, Version), JsonError> {
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

fn state(fields: &mut Fields) -> Result<State, JsonError> {
    Ok(State { mu: fields.number("state_mu")?, steps: fields.integer("state_steps")? })
}

fn row(fields: &mut Fields) -> Result<Input, JsonError> {
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

fn resume(
    config: Config,
    version: Version,
    state: State,
    path: &str,
) -> Result<Session, JsonError> {
    Session::from_state(config, version, state)
        .map_err(|error| JsonError::Refused { field: format!("{path}state_mu"), error })
}

/// `path` is that of the request, with the dot that separates it from a field.
fn take(
    session: &mut Session,
    row: &Input,
    uniform: f64,
    path: &str,
    scratch: &mut Scratch,
) -> Result<Step, JsonError> {
    let step = match row {
        Input::Logits(row) => session.sample(row, uniform, scratch),
        Input::Weights(row) => session.sample_weights(row, uniform, scratch),
    };
    step.map_err(|error| refused(error, row, path))
}

fn refused(error: Error, row: &Input, path: &str) -> JsonError {
    let name = match (&error, row) {
        (Error::Draw { .. }, _) => "uniform",
        (Error::Mu { .. }, _) => "state_mu",
        (Error::Parameter { name, .. }, _) => name,
        (_, Input::Logits(_)) => "logits",
        (_, Input::Weights(_)) => "weights",
    };
    JsonError::Refused { field: format!("{path}{name}"), error }
}
