//! Weights of listed tokens.

use crate::kernels::{Candidate, Scale, weights_into};
use crate::level::Level;

/// Reused memory for the weights of a list of tokens.
#[derive(Debug, Default)]
pub(crate) struct Weighing {
    logits: Vec<f32>,
    weights: Vec<f32>,
}

impl Weighing {
    /// The weights of tokens, beside them.
    pub fn weigh(&mut self, level: Level, scale: Scale, tokens: &[Candidate]) -> &[f32] {
        self.logits.clear();
        self.logits.extend(tokens.iter().map(|t| t.logit()));
        self.weights.resize(tokens.len(), 0.0);
        weights_into(level, &self.logits, scale, &mut self.weights);
        &self.weights
    }
}
