//! A step with a token that was drawn elsewhere.

use super::{Session, Step};
use crate::element::Element;
use crate::error::Error;
use crate::prepared::PreparedRow;
use crate::sampler::Scratch;
use crate::source::{Lists, Source};

impl Session {
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
            // The last kept token has mass, and so has every one that ranks before it.
            Some(token) if token <= kept.bound => self.advance(&facts, &kept, token),
            _ => Err(Error::NotKept { id }),
        }
    }
}
