//! Mirostat as JSON: requests in, responses out, no state in between. For hosts in other languages and for wasm.
//!
//! Each function takes the bytes of one request and gives the text of one response. The host keeps `state_mu` and
//! `state_steps` and sends them back with the next step; they survive the way through JSON bit for bit.
//!
//! | function | request | response |
//! |---|---|---|
//! | [`init`] | `version`, `tau`, optional `eta`, `initial_mu`, `m`, `temperature` | `state_mu`, `state_steps` |
//! | [`step`] | those, `logits` or `weights`, `uniform`, `state_mu`, `state_steps` | `token`, `kept_tokens`, `probability`, `surprise_bits`, `mu_after`, `state_mu`, `state_steps` |
//! | [`one_shot`] | as `step`, without a state: the first step of a session | as `step` |
//! | [`replay`] | as `step`, but `rows` of `logits` or `weights` and `uniform` | `steps`, `mean_surprise` (null for no rows), `final_mu`, `state_mu`, `state_steps` |
//! | [`batch`] | `rows` of `step` requests, all or nothing | `rows` of `step` responses |
//! | [`preview`] | as `step`, without `uniform` | `vocabulary`, `kept_tokens`, `retained_mass`, `expected_surprise`, `state_mu` |
//!
//! `version` is `"v1"` or `"v2"`. A masked logit is `null` or `"-inf"`, since JSON has no infinity. Numbers of a row round to f32; a finite
//! one that overflows there is an error, as is a field that no request has. An error's text names the field.
//!
//! ```
//! let state = sortless::json::init(br#"{"version": "v2", "tau": 1.5}"#)?;
//! assert_eq!(state, r#"{"state_mu":3.0,"state_steps":0}"#);
//! let response = sortless::json::step(
//!     br#"{"version": "v2", "tau": 1.5, "state_mu": 3.0, "state_steps": 0, "logits": [2.0, null, 2.0], "uniform": 0.75}"#,
//! )?;
//! assert!(response.starts_with(r#"{"token":2,"kept_tokens":2,"probability":0.5,"surprise_bits":1.0"#));
//! let error = sortless::json::init(br#"{"version": "v2", "tau": -1}"#).unwrap_err();
//! assert_eq!(error.to_string(), "tau: must be positive and finite, not -1.0");
//! # Ok::<(), sortless::json::JsonError>(())
//! ```

mod error;
mod fields;
mod parts;
mod request;
mod response;

pub use error::JsonError;
pub use parts::Input;
pub use request::{BatchRequest, InitRequest, PreviewRequest, ReplayRequest, StepRequest};
pub use response::{BatchResponse, InitResponse, PreviewResponse, ReplayResponse, StepResponse};

use serde::Serialize;

/// The state that a session begins with.
///
/// # Errors
/// [`JsonError`], as all functions here.
pub fn init(request: &[u8]) -> Result<String, JsonError> {
    text(&InitRequest::parse(request)?.run())
}

/// One step of a session.
///
/// # Errors
/// [`JsonError`].
pub fn step(request: &[u8]) -> Result<String, JsonError> {
    text(&StepRequest::parse(request)?.run()?)
}

/// The first step of a session that isn't gone on with.
///
/// # Errors
/// [`JsonError`].
pub fn one_shot(request: &[u8]) -> Result<String, JsonError> {
    text(&StepRequest::parse_one_shot(request)?.run()?)
}

/// The steps of a session over several rows, all or nothing.
///
/// # Errors
/// [`JsonError`].
pub fn replay(request: &[u8]) -> Result<String, JsonError> {
    text(&ReplayRequest::parse(request)?.run()?)
}

/// A step of each of several sessions, all or nothing.
///
/// # Errors
/// [`JsonError`].
pub fn batch(request: &[u8]) -> Result<String, JsonError> {
    text(&BatchRequest::parse(request)?.run()?)
}

/// What a step would draw from.
///
/// # Errors
/// [`JsonError`].
pub fn preview(request: &[u8]) -> Result<String, JsonError> {
    text(&PreviewRequest::parse(request)?.run()?)
}

fn text(response: &impl Serialize) -> Result<String, JsonError> {
    serde_json::to_string(response).map_err(|error| JsonError::Syntax(error.to_string()))
}
