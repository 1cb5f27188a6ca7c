//! The requests: how they are read, and what they do.

use super::error::JsonError;
use super::fields::Fields;
use super::parts::{Input, parameters, row, state};
use super::response::{BatchResponse, InitResponse, PreviewResponse, ReplayResponse, StepResponse};
use crate::error::Error;
use crate::mirostat::{Config, Session, State, Step, Version};
use crate::sampler::Scratch;

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
