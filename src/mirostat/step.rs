//! What one step gives back.

/// One step of a [`Session`](super::Session). Probability and surprise are those of the row's full distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Step {
    /// The drawn or observed token.
    pub token: u32,
    /// The token's mass over the row's total, in (0, 1].
    pub probability: f64,
    /// The token's surprise in bits.
    pub surprise: f64,
    /// How many tokens were kept; each has mass.
    pub kept: u32,
    /// `mu` as it decided this step, in bits.
    pub mu_before: f64,
    /// `mu` after the feedback, in bits.
    pub mu_after: f64,
}
