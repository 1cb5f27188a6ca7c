//! What a step would do, without doing it.

use super::Session;
use crate::element::Element;
use crate::error::Error;
use crate::prepared::PreparedRow;
use crate::report;
use crate::sampler::Scratch;
use crate::source::{Lists, Source};

/// What a step over a row would draw from.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Preview {
    /// The row's length, masked tokens included.
    pub vocabulary: usize,
    /// How many tokens would be kept.
    pub kept: u32,
    /// The kept tokens' share of the row's mass, in (0, 1].
    pub retained: f64,
    /// The mean surprise of a draw from the kept tokens, in bits: where it is above the target, `mu` will fall.
    pub expected_surprise: f64,
    /// The session's `mu`, in bits.
    pub mu: f64,
}

impl Session {
    /// What a step over this row of logits would draw from. Draws nothing, moves nothing.
    ///
    /// # Errors
    /// What is wrong with the row, as [`sample`](Self::sample).
    ///
    /// ```
    /// use sortless::{Scratch, mirostat::{Config, Session, Version}};
    /// let session = Session::new(Config::new(1.0)?, Version::V2);
    /// let preview = session.preview(&[0.0f32; 4], &mut Scratch::new())?;
    /// assert_eq!((preview.kept, preview.retained, preview.expected_surprise), (4, 1.0, 2.0));
    /// # Ok::<(), sortless::Error>(())
    /// ```
    pub fn preview<E: Element>(&self, row: &[E], scratch: &mut Scratch) -> Result<Preview, Error> {
        let (source, lists) = self.logits(row, scratch)?;
        self.look(source, lists)
    }

    /// What a step over this row of weights would draw from.
    ///
    /// # Errors
    /// What is wrong with the row, as [`sample_weights`](Self::sample_weights).
    pub fn preview_weights(
        &self,
        weights: &[f32],
        scratch: &mut Scratch,
    ) -> Result<Preview, Error> {
        let (source, lists) = self.weights(weights, scratch)?;
        self.look(source, lists)
    }

    /// What a step over this prepared row would draw from.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if the row was prepared at another temperature.
    pub fn preview_prepared(
        &self,
        row: &PreparedRow,
        scratch: &mut Scratch,
    ) -> Result<Preview, Error> {
        self.look(self.prepared(row)?, &mut scratch.lists)
    }

    fn look<E: Element>(
        &self,
        mut source: Source<'_, E>,
        lists: &mut Lists,
    ) -> Result<Preview, Error> {
        let facts = source.facts();
        let rule = self.rule(&facts);
        let kept = source.with_rank(rule.first(), |ranked| {
            let kept = rule.kept(ranked, lists)?;
            ranked.tokens(Some(&kept), &mut lists.tokens)?;
            Ok(kept)
        })?;
        let mean = facts.mean(&lists.tokens, kept.mass);
        Ok(Preview {
            vocabulary: facts.vocab,
            kept: kept.count as u32,
            retained: report::share(kept.mass, facts.total),
            expected_surprise: report::surprise(mean, facts.log_total()),
            mu: self.mu(),
        })
    }
}
