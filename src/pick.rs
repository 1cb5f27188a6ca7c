//! What a decision gives back.

/// A decision: the token, and how many tokens it was drawn from where that is known without the row's total.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Pick {
    /// The token id.
    pub token: u32,
    /// The number of kept tokens, all of which have mass. `None` where nothing truncates: no filter is on, or those that
    /// are keep everything by definition (`top_k` of the row's length or more, `top_p` or `typical_p` 1, `min_p` or
    /// `epsilon` 0). 1 for greedy.
    pub kept: Option<u32>,
}

/// One token with its numbers, all under the full row's distribution at the sampling temperature (greedy: 1).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Alternative {
    /// The token id.
    pub token: u32,
    /// The token's mass over the row's total; 0 where it rounds away.
    pub probability: f64,
    /// The token's mass over that of the kept set; 0 if it was not kept.
    pub conditional: f64,
    /// The surprise in bits, finite for every unmasked token.
    pub surprise: f64,
    /// The log-probability in nats, finite for every unmasked token.
    pub logprob: f64,
}

/// A decision with everything about it.
///
/// Reported probabilities are exact ratios of masses, rounded once. Against the true softmax of the logits they are off
/// by about `abs(x) * 2^-23 + 2^-22`, relative, where `x = (l - m) / T` of the token.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// The drawn token and its numbers.
    pub chosen: Alternative,
    /// How many tokens were kept; each has mass.
    pub kept: u32,
    /// The share of the row's mass that was kept.
    pub retained: f64,
    /// The entropy of the full row's distribution in bits.
    pub entropy: f64,
    /// The n best tokens that are not masked, by rank; then the drawn one, if it is not among them.
    pub alternatives: Vec<Alternative>,
}
