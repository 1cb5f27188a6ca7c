//! The feedback state of one generation, and its step.

use super::config::{Config, Version, check};
use super::rule::Rule;
use super::state::{Checkpoint, State};
use super::step::Step;
use crate::element::Element;
use crate::error::{Error, Number};
use crate::fraction;
use crate::kernels::Candidate;
use crate::level::Level;
use crate::measure::{Facts, Measure};
use crate::prepared::PreparedRow;
use crate::rank::{Prefix, Seek};
use crate::report;
use crate::row::check_draw;
use crate::sampler::Scratch;
use crate::source::{Lists, Source};

/// The feedback state of one generation. It owns no logits and no generator; a sequence has one of its own.
///
/// A step takes exactly one draw, and the state moves only after everything in it succeeded: after an error the session is
/// what it was before.
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

    /// One step over a row of 1 to [`MAX_VOCAB`](crate::MAX_VOCAB) logits, with the draw `u` in `[0, 1)`.
    ///
    /// # Errors
    /// [`Error::RowLength`], [`Error::NotFinite`], [`Error::NoAllowedToken`], [`Error::Draw`], [`Error::Mu`], in this
    /// order. The session is untouched then.
    pub fn sample<E: Element>(
        &mut self,
        row: &[E],
        u: f64,
        scratch: &mut Scratch,
    ) -> Result<Step, Error> {
        self.sample_with(row, || u, scratch)
    }

    /// One step over a row, with a generator: `draw` is called once, after the row was found good, so that a bad row
    /// consumes no draw.
    ///
    /// # Errors
    /// As [`sample`](Self::sample).
    ///
    /// ```
    /// # use sortless::{Draws, Scratch, mirostat::{Config, Session, Version}};
    /// let mut draws = Draws::new(1, 0);
    /// let mut session = Session::new(Config::new(1.0)?, Version::V2);
    /// let mut scratch = Scratch::new();
    /// assert!(session.sample_with(&[f32::NAN], || draws.next_draw(), &mut scratch).is_err());
    /// assert_eq!(draws.step(), 0);
    /// session.sample_with(&[1.0f32, 0.0], || draws.next_draw(), &mut scratch)?;
    /// assert_eq!(draws.step(), 1);
    /// # Ok::<(), sortless::Error>(())
    /// ```
    pub fn sample_with<E: Element>(
        &mut self,
        row: &[E],
        draw: impl FnOnce() -> f64,
        scratch: &mut Scratch,
    ) -> Result<Step, Error> {
        let (source, lists) = self.logits(row, scratch)?;
        self.step(source, draw, lists)
    }

    /// One step over a row of weights: finite, at least 0, not all 0; they need not sum to anything.
    ///
    /// # Errors
    /// [`Error::Parameter`] if the config's temperature is not 1; then [`Error::RowLength`]; [`Error::NotFinite`] or
    /// [`Error::NegativeWeight`], whichever has the lowest index; [`Error::NoAllowedToken`], [`Error::Draw`], [`Error::Mu`].
    pub fn sample_weights(
        &mut self,
        weights: &[f32],
        u: f64,
        scratch: &mut Scratch,
    ) -> Result<Step, Error> {
        self.sample_weights_with(weights, || u, scratch)
    }

    /// One step over a row of weights, with a generator, as [`sample_with`](Self::sample_with).
    ///
    /// # Errors
    /// As [`sample_weights`](Self::sample_weights).
    pub fn sample_weights_with(
        &mut self,
        weights: &[f32],
        draw: impl FnOnce() -> f64,
        scratch: &mut Scratch,
    ) -> Result<Step, Error> {
        let (source, lists) = self.weights(weights, scratch)?;
        self.step(source, draw, lists)
    }

    /// One step over a prepared row.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if the row was prepared at another temperature; [`Error::Draw`], [`Error::Mu`].
    pub fn sample_prepared(
        &mut self,
        row: &PreparedRow,
        u: f64,
        scratch: &mut Scratch,
    ) -> Result<Step, Error> {
        let source = self.prepared(row)?;
        self.step(source, || u, &mut scratch.lists)
    }

    /// A step with a token that was drawn elsewhere, such as by the host from [`candidates`](Self::candidates): checks that
    /// it is in the set that a draw from this row would be made from, and moves the state as that draw would.
    ///
    /// # Errors
    /// [`Error::TokenId`] outside the row, [`Error::NotKept`] outside the set; and as [`sample`](Self::sample).
    ///
    /// ```
    /// # use sortless::{Error, Scratch, mirostat::{Config, Session, Version}};
    /// let (row, mut scratch) = ([5.0f32, 0.0, 4.0], Scratch::new());
    /// let mut session = Session::new(Config::new(1.0)?, Version::V2);
    /// assert_eq!(session.observe(&row, 1, &mut scratch), Err(Error::NotKept { id: 1 }));
    /// assert_eq!(session.observe(&row, 2, &mut scratch)?.kept, 2);
    /// # Ok::<(), sortless::Error>(())
    /// ```
    pub fn observe<E: Element>(
        &mut self,
        row: &[E],
        token: u32,
        scratch: &mut Scratch,
    ) -> Result<Step, Error> {
        let (source, lists) = self.logits(row, scratch)?;
        self.accept(source, token, lists)
    }

    /// As [`observe`](Self::observe), over a row of weights.
    ///
    /// # Errors
    /// As [`observe`](Self::observe) and [`sample_weights`](Self::sample_weights).
    pub fn observe_weights(
        &mut self,
        weights: &[f32],
        token: u32,
        scratch: &mut Scratch,
    ) -> Result<Step, Error> {
        let (source, lists) = self.weights(weights, scratch)?;
        self.accept(source, token, lists)
    }

    /// As [`observe`](Self::observe), over a prepared row.
    ///
    /// # Errors
    /// As [`observe`](Self::observe) and [`sample_prepared`](Self::sample_prepared).
    pub fn observe_prepared(
        &mut self,
        row: &PreparedRow,
        token: u32,
        scratch: &mut Scratch,
    ) -> Result<Step, Error> {
        let source = self.prepared(row)?;
        self.accept(source, token, &mut scratch.lists)
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

    fn step<E: Element>(
        &mut self,
        mut source: Source<'_, E>,
        draw: impl FnOnce() -> f64,
        lists: &mut Lists,
    ) -> Result<Step, Error> {
        let u = draw();
        check_draw(u)?;
        let facts = source.facts();
        let rule = self.rule(&facts);
        let (kept, token) = source.with_rank(rule.first(), |ranked| {
            let kept = rule.kept(ranked, lists)?;
            let drawn = ranked.seek(Seek::Mass(fraction::floor(u, kept.mass)))?;
            Ok((kept, drawn.bound))
        })?;
        self.advance(&facts, &kept, token)
    }

    fn accept<E: Element>(
        &mut self,
        mut source: Source<'_, E>,
        id: u32,
        lists: &mut Lists,
    ) -> Result<Step, Error> {
        let facts = source.facts();
        let token = source.token(id)?;
        let rule = self.rule(&facts);
        let kept = source.with_rank(rule.first(), |ranked| rule.kept(ranked, lists))?;
        match token {
            Some(token) if token <= kept.bound && facts.measure.mass(token.logit()) != 0 => {
                self.advance(&facts, &kept, token)
            }
            _ => Err(Error::NotKept { id }),
        }
    }

    /// The feedback, once everything else is known.
    fn advance(&mut self, facts: &Facts, kept: &Prefix, token: Candidate) -> Result<Step, Error> {
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
