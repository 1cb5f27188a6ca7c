//! Sampling parameters and their ranges.

use crate::error::{Error, Number};

/// What to do with a row: a temperature, then filters, each `None` where it is off.
///
/// They apply in this order, each over what the ones before it left: temperature, `top_k`, `top_p`, `min_p`,
/// `typical_p`, `epsilon`. (The first four are in Hugging Face's order.) Ranges are checked by
/// [`Sampler::new`](crate::Sampler::new).
///
/// ```
/// use sortless::{Sampler, SamplingParams};
/// let params = SamplingParams::new().with_temperature(0.8).with_top_k(40).with_top_p(0.95);
/// let sampler = Sampler::new(params)?;
/// # Ok::<(), sortless::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct SamplingParams {
    /// Divides the logits: a normal positive f32, or 0 (of either sign) for greedy, where no filter matters. Default 1.
    pub temperature: f32,
    /// Keep the `top_k` best tokens: at least 1; the row's length or more keeps all.
    pub top_k: Option<u32>,
    /// Keep the shortest ranked prefix with at least this share of the mass: in (0, 1]; 1 keeps every token with mass.
    pub top_p: Option<f64>,
    /// Keep tokens with at least this share of the best token's weight: in [0, 1].
    pub min_p: Option<f64>,
    /// Locally typical sampling: keep the tokens whose surprise is nearest to the entropy, up to this share of the
    /// mass: in (0, 1].
    pub typical_p: Option<f64>,
    /// Keep tokens with at least this share of the mass: in [0, 1).
    pub epsilon: Option<f64>,
}

impl Default for SamplingParams {
    fn default() -> Self {
        Self {
            temperature: 1.0,
            top_k: None,
            top_p: None,
            min_p: None,
            typical_p: None,
            epsilon: None,
        }
    }
}

impl SamplingParams {
    /// Temperature 1, every filter off.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the temperature; 0 is greedy.
    pub fn with_temperature(self, temperature: f32) -> Self {
        Self { temperature, ..self }
    }

    /// Switches top-k on.
    pub fn with_top_k(self, top_k: u32) -> Self {
        Self { top_k: Some(top_k), ..self }
    }

    /// Switches top-p on.
    pub fn with_top_p(self, top_p: f64) -> Self {
        Self { top_p: Some(top_p), ..self }
    }

    /// Switches min-p on.
    pub fn with_min_p(self, min_p: f64) -> Self {
        Self { min_p: Some(min_p), ..self }
    }

    /// Switches typical sampling on.
    pub fn with_typical_p(self, typical_p: f64) -> Self {
        Self { typical_p: Some(typical_p), ..self }
    }

    /// Switches the epsilon cut-off on.
    pub fn with_epsilon(self, epsilon: f64) -> Self {
        Self { epsilon: Some(epsilon), ..self }
    }

    /// Whether the temperature is 0, of either sign.
    pub fn is_greedy(&self) -> bool {
        self.temperature == 0.0
    }

    /// Checks every range.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if !self.is_greedy() {
            check_temperature(self.temperature)?;
        }
        if self.top_k == Some(0) {
            return Err(parameter(
                "top_k",
                0.0,
                "at least 1 (leave it out, None, to switch the filter off)",
            ));
        }
        let off = "in (0, 1] (leave it out, None, to switch the filter off)";
        check("top_p", self.top_p, |p| 0.0 < p && p <= 1.0, off)?;
        check(
            "min_p",
            self.min_p,
            |p| (0.0..=1.0).contains(&p),
            "in [0, 1] (leave it out, None, to switch the filter off)",
        )?;
        check("typical_p", self.typical_p, |p| 0.0 < p && p <= 1.0, off)?;
        check(
            "epsilon",
            self.epsilon,
            |p| (0.0..1.0).contains(&p),
            "in [0, 1) (leave it out, None, to switch the filter off)",
        )
    }
}

fn parameter(name: &'static str, value: f64, expected: &'static str) -> Error {
    Error::Parameter { name, value: Number(value), expected }
}

/// The valid range is what is tested, so that NaN can't slip through.
fn check(
    name: &'static str,
    value: Option<f64>,
    valid: impl Fn(f64) -> bool,
    expected: &'static str,
) -> Result<(), Error> {
    match value {
        Some(v) if !valid(v) => Err(parameter(name, v, expected)),
        _ => Ok(()),
    }
}

/// A temperature is a normal positive f32.
pub(crate) fn check_temperature(temperature: f32) -> Result<(), Error> {
    if temperature.is_normal() && temperature > 0.0 {
        return Ok(());
    }
    let expected = "a normal positive number, or 0 for greedy where parameters are given together";
    Err(parameter("temperature", f64::from(temperature), expected))
}
