//! A step with a draw of the session's own, over logits, weights and prepared rows.

use super::{Session, Step};
use crate::element::Element;
use crate::error::Error;
use crate::fraction;
use crate::prepared::PreparedRow;
use crate::rank::Seek;
use crate::row::check_draw;
use crate::sampler::Scratch;
use crate::source::{Lists, Source};

impl Session {
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
}
