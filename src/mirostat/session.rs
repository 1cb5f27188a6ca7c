//! The feedback state of one generation, and its feedback.

use super::config::{Config, Version, check};
use super::rule::Rule;
use super::state::{Checkpoint, State};
use super::step::Step;
use crate::element::Element;
use crate::error::{Error, Number};
use crate::kernels::Candidate;
use crate::level::Level;
use crate::measure::{Facts, Measure};
use crate::prepared::PreparedRow;
use crate::rank::Prefix;
use crate::report;
use crate::sampler::Scratch;
use crate::source::{Lists, Source};

/// The feedback state of one generation. It owns no logits and no generator; a sequence has one of its own.
///
/// A step takes exactly one draw, and the state moves only after everything in it succeeded: after an error the session is
/// what it was before. Once its scratch is warm a step allocates nothing.
///
/// Rows of logits are divided by the config's temperature first. Rows of weights are distributions already: with them the
/// config's temperature must be 1, and a prepared row must have been prepared at the config's temperature.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    config: Config,
    version: Version,
    level: Level,
    state: State,
}

impl Session {
    /// A generation that is about to begin.
    pub fn new(config: Config, version: Version) -> Self {
        Self { config, version, level: Level::best(), state: start(&config) }
    }

    /// A generation that goes on from a state.
    ///
    /// # Errors
    /// [`Error::Parameter`] if its `mu` is not finite.
    pub fn from_state(config: Config, version: Version, state: State) -> Result<Self, Error> {
        check("mu", state.mu, f64::is_finite, "finite")?;
        Ok(Self { state, ..Self::new(config, version) })
    }

    /// The same on another level: for tests and benchmarks, since every level gives the same bits.
    pub fn with_level(self, level: Level) -> Self {
        Self { level, ..self }
    }

    /// The parameters.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The surprise that the next step allows, in bits.
    pub fn mu(&self) -> f64 {
        self.state.mu
    }

    /// How many steps were taken.
    pub fn steps(&self) -> u64 {
        self.state.steps
    }

    /// The state, portable.
    pub fn state(&self) -> State {
        self.state
    }

    /// Goes back to the beginning: the config's `initial_mu`, no step taken.
    pub fn reset(&mut self) {
        self.state = start(&self.config);
    }

    /// Puts the state aside, with the parameters that it belongs to.
    pub fn checkpoint(&self) -> Checkpoint {
        Checkpoint { config: self.config, version: self.version, state: self.state }
    }

    /// Takes up a state that was put aside by a session of the same config and version.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for a checkpoint of another config or version.
    ///
    /// ```
    /// # use sortless::{Scratch, mirostat::{Config, Session, Version}};
    /// let mut session = Session::new(Config::new(1.0)?, Version::V2);
    /// let before = session.checkpoint();
    /// session.sample(&[1.0f32, 0.0], 0.5, &mut Scratch::new())?;
    /// session.restore(&before)?;
    /// assert_eq!((session.mu(), session.steps()), (2.0, 0));
    /// # Ok::<(), sortless::Error>(())
    /// ```
    pub fn restore(&mut self, checkpoint: &Checkpoint) -> Result<(), Error> {
        if checkpoint.config != self.config {
            let what = "the checkpoint's config";
            return Err(Error::Mismatch { what });
        }
        if checkpoint.version != self.version {
            let what = "the checkpoint's version";
            return Err(Error::Mismatch { what });
        }
        self.state = checkpoint.state;
        Ok(())
    }

    /// A second session that goes on from here on its own.
    pub fn fork(&self) -> Self {
        self.clone()
    }

    /// A checked row of logits.
    pub(super) fn logits<'a, E: Element>(
        &self,
        row: &'a [E],
        scratch: &'a mut Scratch,
    ) -> Result<(Source<'a, E>, &'a mut Lists), Error> {
        Source::logits(row, self.config.temperature(), self.level, scratch)
    }

    /// A checked row of weights, which no temperature applies to.
    pub(super) fn weights<'a>(
        &self,
        weights: &'a [f32],
        scratch: &'a mut Scratch,
    ) -> Result<(Source<'a, f32>, &'a mut Lists), Error> {
        self.check_no_temperature()?;
        Source::weights(weights, scratch)
    }

    /// A prepared row, if it fits the config.
    pub(super) fn prepared<'a>(&self, row: &'a PreparedRow) -> Result<Source<'a, f32>, Error> {
        match row.facts().measure {
            Measure::Weights(_) => self.check_no_temperature()?,
            Measure::Logits(scale) if scale.temperature() != self.config.temperature() => {
                let what = "the prepared row's temperature";
                return Err(Error::Mismatch { what });
            }
            Measure::Logits(_) => {}
        }
        Ok(Source::prepared(row))
    }

    fn check_no_temperature(&self) -> Result<(), Error> {
        let temperature = f64::from(self.config.temperature());
        check("temperature", temperature, |t| t == 1.0, "1 for a row of weights")
    }

    pub(super) fn rule(&self, facts: &Facts) -> Rule {
        Rule::new(self.version, self.state.mu, self.config.m(), facts)
    }

    /// The feedback, once everything else is known.
    pub(super) fn advance(
        &mut self,
        facts: &Facts,
        kept: &Prefix,
        token: Candidate,
    ) -> Result<Step, Error> {
        let surprise = facts.surprise(token.logit());
        let (mu, config) = (self.state.mu, &self.config);
        let mu_after = report::next_mu(mu, config.eta(), surprise, config.tau());
        if !mu_after.is_finite() {
            return Err(Error::Mu { mu: Number(mu_after) });
        }
        self.state = State { mu: mu_after, steps: self.state.steps.saturating_add(1) };
        Ok(Step {
            token: token.id(),
            probability: facts.probability(token.logit()),
            surprise,
            kept: kept.count as u32,
            mu_before: mu,
            mu_after,
        })
    }
}

fn start(config: &Config) -> State {
    State { mu: config.initial_mu(), steps: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing else can tell: every level gives the same bits, so a session that stays on one passes all other tests.
    #[test]
    fn a_level_is_taken() {
        let config = Config::new(3.0).unwrap();
        for level in Level::tested() {
            assert_eq!(Session::new(config, Version::V2).with_level(level).level, level);
        }
    }
}
