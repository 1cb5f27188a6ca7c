//! Where a row's rank comes from: logits, weights or a prepared row, behind one face.

use crate::element::Element;
use crate::error::Error;
use crate::full::{self, Full, Known};
use crate::head::{self, Head, Reach};
use crate::kernels::{Candidate, moments, total_mass};
use crate::level::Level;
use crate::measure::{Facts, Measure};
use crate::prepared::PreparedRow;
use crate::rank::{Bracket, Need, Ranked, Seek};
use crate::row::Row;
use crate::sampler::Scratch;
use crate::sketch::Sketch;
use crate::weights::Weights;

/// Reused memory of whoever asks a rank for tokens.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    pub tokens: Vec<Candidate>,
    pub arguments: Vec<f64>,
}

/// A checked row with its exact total.
pub(crate) enum Source<'a, E> {
    Logits(Logits<'a, E>),
    Weights(&'a [f32], Weights<'a>),
    Prepared(&'a PreparedRow, Head<'a>),
}

/// A row of logits, with the memory to rank it.
pub(crate) struct Logits<'a, E> {
    row: Row<'a, E>,
    facts: Facts,
    head: &'a mut head::Memory,
    full: &'a mut full::Memory,
    /// Whether only the whole row may decide, for tests.
    only_full: bool,
}

impl<'a, E: Element> Source<'a, E> {
    /// Checks a row of logits, whose temperature has been checked, and takes its total.
    pub fn logits(
        data: &'a [E],
        temperature: f32,
        level: Level,
        scratch: &'a mut Scratch,
    ) -> Result<(Self, &'a mut Lists), Error> {
        let only_full = scratch.only_full();
        let Scratch { blocks, head, full, lists, .. } = scratch;
        // Who draws checks the draw afterwards.
        let row = Row::new(data, temperature, 0.0, level, Some(blocks))?;
        let total = total_mass(level, data, row.scale);
        let logits = Logits {
            facts: Facts::new(Measure::Logits(row.scale), data.len(), total),
            row,
            head,
            full,
            only_full,
        };
        Ok((Self::Logits(logits), lists))
    }

    pub fn facts(&self) -> Facts {
        match self {
            Self::Logits(logits) => logits.facts,
            Self::Weights(_, weights) => weights.facts,
            Self::Prepared(row, _) => row.facts(),
        }
    }

    /// The mean exponent argument under the row's distribution.
    pub fn mean(&mut self, lists: &mut Lists) -> Result<f64, Error> {
        if let Self::Logits(Logits { row, .. }) = self {
            return Ok(moments(row.level, row.data, row.scale).mean());
        }
        self.with_rank(Seek::Mass(0), |ranked| ranked.all(&mut lists.tokens))?;
        let facts = self.facts();
        Ok(facts.mean(&lists.tokens, facts.total))
    }

    /// A token of the row; `None` if it is masked.
    pub fn token(&self, id: u32) -> Result<Option<Candidate>, Error> {
        let index = id as usize;
        let value = match self {
            Self::Logits(logits) => logits.row.data.get(index).map(|v| v.to_f32()),
            Self::Weights(values, _) => values.get(index).copied(),
            Self::Prepared(row, _) => row.values().get(index).copied(),
        };
        let facts = self.facts();
        let len = facts.vocab;
        let value = value.ok_or(Error::TokenId { id, len })?;
        Ok(facts.token(id, value))
    }

    /// Calls `f` with the rank, seen ever deeper until it is deep enough. `first` is what `f` will seek first.
    pub fn with_rank<T>(
        &mut self,
        first: Seek,
        mut f: impl FnMut(&mut dyn Ranked) -> Result<T, Need>,
    ) -> Result<T, Error> {
        let found = match self {
            Self::Logits(logits) => logits.with_rank(first, f),
            Self::Weights(_, weights) => f(weights),
            Self::Prepared(_, head) => f(head),
        };
        // The whole rank needs nothing more, and a checked row has a token with mass.
        found.map_err(|_| Error::NoAllowedToken)
    }
}

impl<'a> Source<'a, f32> {
    /// Checks a row of weights and takes its masses.
    pub fn weights(
        values: &'a [f32],
        scratch: &'a mut Scratch,
    ) -> Result<(Self, &'a mut Lists), Error> {
        let weights = Weights::new(values, &mut scratch.weights)?;
        Ok((Self::Weights(values, weights), &mut scratch.lists))
    }

    /// A row that has been checked and ranked.
    pub fn prepared(row: &'a PreparedRow) -> Self {
        Self::Prepared(row, row.head())
    }
}

impl<E: Element> Logits<'_, E> {
    fn with_rank<T>(
        &mut self,
        first: Seek,
        mut f: impl FnMut(&mut dyn Ranked) -> Result<T, Need>,
    ) -> Result<T, Need> {
        let total = Some(Bracket::exact(self.facts.total));
        let short = self.row.data.len() <= Reach::SHORT;
        let reach = if short { Some(Reach::ALL) } else { self.reach(first) };
        let more = Reach::Tokens(Reach::MORE.min(self.row.blocks.len()));
        // A second look is for what turns out to need more than it asked for first.
        for reach in [reach, reach.filter(|_| !short).map(|_| more)] {
            if let Some(reach) = reach.filter(|_| !self.only_full)
                && let Some(mut head) = Head::new(&self.row, reach, total, self.head)
                && let Ok(found) = f(&mut head)
            {
                return Ok(found);
            }
        }
        let forecast = |sketch: &mut Sketch<'_>| {
            // What comes out doesn't matter, only what it sought.
            let _ = f(sketch);
        };
        let known = Known { total: Some(self.facts.total), moments: None };
        let mut full = Full::new(&self.row, known, false, self.full, forecast);
        f(&mut full)
    }

    /// A head that is deep enough for a seek and not too long to sort.
    fn reach(&self, seek: Seek) -> Option<Reach> {
        let blocks = self.row.blocks;
        match seek {
            Seek::Logit(logit) => Reach::from(blocks, logit),
            Seek::Count(count) => {
                let count = usize::try_from(count).unwrap_or(usize::MAX);
                (count <= blocks.len()).then_some(Reach::Tokens(count))
            }
            Seek::Mass(_) | Seek::Weight(_) => Some(Reach::Tokens(Reach::FEW.min(blocks.len()))),
        }
    }
}
