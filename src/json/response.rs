//! The responses.

use crate::mirostat::{State, Step};
use serde::Serialize;

/// The state that a session begins with.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct InitResponse {
    /// `mu`, in bits.
    pub state_mu: f64,
    /// 0.
    pub state_steps: u64,
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct StepResponse {
    /// The drawn token.
    pub token: u32,
    /// How many tokens were kept.
    pub kept_tokens: u32,
    /// The token's share of the row's mass.
    pub probability: f64,
    /// The token's surprise in bits.
    pub surprise_bits: f64,
    /// `mu` after the step, in bits.
    pub mu_after: f64,
    /// The same, to be sent back.
    pub state_mu: f64,
    /// How many steps were taken, to be sent back.
    pub state_steps: u64,
}

impl StepResponse {
    pub(super) fn new(step: &Step, state: State) -> Self {
        Self {
            token: step.token,
            kept_tokens: step.kept,
            probability: step.probability,
            surprise_bits: step.surprise,
            mu_after: step.mu_after,
            state_mu: state.mu,
            state_steps: state.steps,
        }
    }
}

/// Several steps of one session.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ReplayResponse {
    /// The steps.
    pub steps: Vec<StepResponse>,
    /// Their mean surprise in bits; null where there are none.
    pub mean_surprise: Option<f64>,
    /// `mu` after the last step, in bits.
    pub final_mu: f64,
    /// The same, to be sent back.
    pub state_mu: f64,
    /// How many steps were taken, to be sent back.
    pub state_steps: u64,
}

impl ReplayResponse {
    pub(super) fn new(steps: Vec<StepResponse>, state: State) -> Self {
        let surprises = steps.iter().map(|s| s.surprise_bits);
        Self {
            mean_surprise: crate::mirostat::running_mean(surprises).last(),
            steps,
            final_mu: state.mu,
            state_mu: state.mu,
            state_steps: state.steps,
        }
    }
}

/// A step of each of several sessions.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct BatchResponse {
    /// Their steps, in the request's order.
    pub rows: Vec<StepResponse>,
}

/// What a step would draw from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PreviewResponse {
    /// The row's length.
    pub vocabulary: usize,
    /// How many tokens would be kept.
    pub kept_tokens: u32,
    /// Their share of the row's mass.
    pub retained_mass: f64,
    /// The mean surprise of a draw from them, in bits.
    pub expected_surprise: f64,
    /// The session's `mu`, in bits.
    pub state_mu: f64,
}
