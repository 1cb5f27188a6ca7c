//! Mirostat's parameters and their ranges.

use crate::error::{Error, Number};
use crate::params::check_temperature;

/// How the kept set follows from `mu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum Version {
    /// By a Zipf law that is fitted to the best tokens, and top-k.
    V1,
    /// By each token's own surprise.
    V2,
}

/// The parameters of a [`Session`](super::Session), checked.
///
/// ```
/// use sortless::mirostat::Config;
/// let config = Config::new(3.0)?.with_eta(0.05)?;
/// assert_eq!((config.tau(), config.eta(), config.initial_mu(), config.m()), (3.0, 0.05, 6.0, 100));
/// assert!(Config::new(f64::NAN).is_err());
/// # Ok::<(), sortless::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "Unchecked"))]
pub struct Config {
    tau: f64,
    eta: f64,
    initial_mu: f64,
    m: usize,
    temperature: f32,
}

/// The default learning rate.
const ETA: f64 = 0.1;
/// The default number of tokens that version 1 fits its law to.
const M: usize = 100;

impl Config {
    /// A target surprise `tau` in bits, positive and finite; not every row [can reach](super#what-it-can-reach) it. `eta` 0.1, `initial_mu` 2 tau, `m` 100, temperature 1.
    ///
    /// # Errors
    /// [`Error::Parameter`] outside that range; also for a tau so large that twice of it is not finite.
    pub fn new(tau: f64) -> Result<Self, Error> {
        Self { tau, eta: ETA, initial_mu: 2.0 * tau, m: M, temperature: 1.0 }.checked()
    }

    /// Sets the learning rate, positive and finite.
    ///
    /// # Errors
    /// [`Error::Parameter`] outside that range.
    pub fn with_eta(self, eta: f64) -> Result<Self, Error> {
        Self { eta, ..self }.checked()
    }

    /// Sets the `mu` that a session begins with, in bits: at least 0, finite.
    ///
    /// # Errors
    /// [`Error::Parameter`] outside that range.
    pub fn with_initial_mu(self, initial_mu: f64) -> Result<Self, Error> {
        Self { initial_mu, ..self }.checked()
    }

    /// Sets how many of the best tokens version 1 fits its law to: at least 2. Version 2 makes no use of it.
    ///
    /// # Errors
    /// [`Error::Parameter`] outside that range.
    pub fn with_m(self, m: usize) -> Result<Self, Error> {
        Self { m, ..self }.checked()
    }

    /// Sets the temperature that divides the logits before anything else: a normal positive f32.
    ///
    /// # Errors
    /// [`Error::Parameter`] outside that range.
    pub fn with_temperature(self, temperature: f32) -> Result<Self, Error> {
        Self { temperature, ..self }.checked()
    }

    /// The target surprise in bits.
    pub fn tau(&self) -> f64 {
        self.tau
    }

    /// The learning rate.
    pub fn eta(&self) -> f64 {
        self.eta
    }

    /// The `mu` that a session begins with, in bits.
    pub fn initial_mu(&self) -> f64 {
        self.initial_mu
    }

    /// How many of the best tokens version 1 fits its law to.
    pub fn m(&self) -> usize {
        self.m
    }

    /// The temperature.
    pub fn temperature(&self) -> f32 {
        self.temperature
    }

    fn checked(self) -> Result<Self, Error> {
        // The valid range is what is tested, so that NaN can't slip through.
        let positive = |v: f64| 0.0 < v && v < f64::INFINITY;
        check("tau", self.tau, positive, "positive and finite")?;
        check("eta", self.eta, positive, "positive and finite")?;
        let mu_range = |v: f64| (0.0..f64::INFINITY).contains(&v);
        check("initial_mu", self.initial_mu, mu_range, "at least 0 and finite")?;
        check("m", self.m as f64, |m| m >= 2.0, "at least 2")?;
        check_temperature(self.temperature)?;
        Ok(self)
    }
}

pub(super) fn check(
    name: &'static str,
    value: f64,
    valid: impl Fn(f64) -> bool,
    expected: &'static str,
) -> Result<(), Error> {
    if valid(value) {
        return Ok(());
    }
    let value = Number(value);
    Err(Error::Parameter { name, value, expected })
}

/// A config as it comes from outside: what is left out has its default.
#[cfg(feature = "serde")]
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Unchecked {
    tau: f64,
    eta: Option<f64>,
    initial_mu: Option<f64>,
    m: Option<usize>,
    temperature: Option<f32>,
}

#[cfg(feature = "serde")]
impl TryFrom<Unchecked> for Config {
    type Error = Error;

    fn try_from(given: Unchecked) -> Result<Self, Error> {
        let tau = given.tau;
        Self {
            tau,
            eta: given.eta.unwrap_or(ETA),
            initial_mu: given.initial_mu.unwrap_or(2.0 * tau),
            m: given.m.unwrap_or(M),
            temperature: given.temperature.unwrap_or(1.0),
        }
        .checked()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The comparisons with the reference read the config, so they can't tell whether it is what was asked for.
    #[test]
    fn each_parameter_is_taken() {
        let config = Config::new(3.0)
            .and_then(|c| c.with_eta(0.25))
            .and_then(|c| c.with_initial_mu(7.5))
            .and_then(|c| c.with_m(12))
            .and_then(|c| c.with_temperature(0.5))
            .unwrap();
        assert_eq!(config.tau(), 3.0);
        assert_eq!(config.eta(), 0.25);
        assert_eq!(config.initial_mu(), 7.5);
        assert_eq!(config.m(), 12);
        assert_eq!(config.temperature(), 0.5);
    }

    #[test]
    fn nothing_outside_its_range_is_taken() {
        let config = Config::new(3.0).unwrap();
        for bad in [0.0, -1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
            assert!(Config::new(bad).is_err(), "tau {bad}");
            assert!(config.with_eta(bad).is_err(), "eta {bad}");
            assert!(bad == 0.0 || config.with_initial_mu(bad).is_err(), "initial mu {bad}");
            assert!(config.with_temperature(bad as f32).is_err(), "temperature {bad}");
        }
        assert!(config.with_initial_mu(0.0).is_ok());
        assert!(config.with_m(1).is_err() && config.with_m(2).is_ok());
    }
}
