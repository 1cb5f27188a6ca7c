//! What a row's values, logits or weights, mean: weights, masses, exponent arguments and the numbers made of them.

use crate::kernels::{Candidate, ONE, Scale, float_of, mass, order_of, smallest};
use crate::rank::Seek;
use crate::report;

/// How a value becomes a weight. Either way, what a larger value gives is never less.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Measure {
    /// Values are logits.
    Logits(Scale),
    /// Values are weights, of which this is the largest.
    Weights(f32),
}

impl Measure {
    /// The largest value.
    pub fn max(&self) -> f32 {
        match self {
            Self::Logits(scale) => scale.max(),
            Self::Weights(max) => *max,
        }
    }

    /// The weight, in `[0, 1]`.
    pub fn weight(&self, value: f32) -> f32 {
        match self {
            Self::Logits(scale) => scale.weight(value),
            Self::Weights(max) => value / max,
        }
    }

    /// The mass.
    pub fn mass(&self, value: f32) -> u64 {
        mass(self.weight(value))
    }

    /// The exponent argument.
    pub fn argument(&self, value: f32) -> f64 {
        match self {
            Self::Logits(scale) => f64::from(scale.argument(value)),
            Self::Weights(_) => report::log_weight(self.weight(value)),
        }
    }

    /// `w x 2^43` rounded once, of a token with mass: its part of the first moment.
    pub fn moment(&self, value: f32) -> i64 {
        let w = f64::from(self.weight(value));
        (w * self.argument(value) * ONE as f64).round_ties_even() as i64
    }

    /// The value of a masked token.
    pub fn masked(&self) -> f32 {
        match self {
            Self::Logits(_) => f32::NEG_INFINITY,
            Self::Weights(_) => 0.0,
        }
    }

    /// The lowest value that is not masked.
    fn min(&self) -> f32 {
        match self {
            Self::Logits(_) => f32::MIN,
            Self::Weights(_) => f32::from_bits(1),
        }
    }
}

/// A row's measure with its length and its exact total.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Facts {
    pub measure: Measure,
    /// The row's length, masked tokens included.
    pub vocab: usize,
    /// `S`.
    pub total: u64,
    /// `L`.
    log_total: f64,
}

impl Facts {
    pub fn new(measure: Measure, vocab: usize, total: u64) -> Self {
        Self { measure, vocab, total, log_total: report::log_total(total) }
    }

    /// `L`.
    pub fn log_total(&self) -> f64 {
        self.log_total
    }

    /// The surprise of a value, in bits.
    pub fn surprise(&self, value: f32) -> f64 {
        report::surprise(self.measure.argument(value), self.log_total)
    }

    /// The probability of a value.
    pub fn probability(&self, value: f32) -> f64 {
        report::share(self.measure.mass(value), self.total)
    }

    /// The best token, and all with at most this surprise as it is reported. That number never grows with the value,
    /// so that bisecting over all values finds where it passes the limit.
    pub fn seek_surprise(&self, limit: f64) -> Seek {
        let max = self.measure.max();
        if self.surprise(max) > limit {
            return Seek::Count(1);
        }
        let (low, high) = (order_of(self.measure.min()), order_of(max));
        Seek::Logit(smallest(low, high, |order| self.surprise(float_of(order)) <= limit, float_of))
    }

    /// The mean exponent argument of tokens with mass, whose masses sum to `mass`. An integer sum: their order doesn't
    /// matter.
    pub fn mean(&self, tokens: &[Candidate], mass: u64) -> f64 {
        let moments = tokens.iter().map(|t| self.measure.moment(t.logit()));
        moments.sum::<i64>() as f64 / mass as f64
    }

    /// A token by its id and value.
    pub fn token(&self, id: u32, value: f32) -> Option<Candidate> {
        (value > self.measure.masked()).then(|| Candidate::new(id, value))
    }
}
