//! What a row's distribution looks like: entropy, the best tokens, and what each filter would keep of it. All in bits.
//!
//! Everything is computed as the samplers compute it, from exact masses, and nothing is sorted that needn't be: entropy needs no
//! order at all, and a prefix is found by selection.
//!
//! ```
//! use sortless::{Scratch, diagnostics::Diagnostics};
//! let mut scratch = Scratch::new();
//! let mut row = Diagnostics::new(&[3.0f32, 3.0, 3.0, 3.0, f32::NEG_INFINITY], &mut scratch)?;
//! assert_eq!(row.entropy()?, 2.0);
//! assert_eq!(row.top_p_len(0.6)?, 3);
//! assert_eq!(row.prefix_mass(2)?, 0.5);
//! assert_eq!(row.top(2)?, [0, 1]);
//! # Ok::<(), sortless::Error>(())
//! ```

mod kept;

use crate::element::Element;
use crate::error::{Error, Number};
use crate::level::Level;
use crate::measure::Facts;
use crate::params::check_temperature;
use crate::prepared::PreparedRow;
use crate::rank::{Prefix, Seek};
use crate::report;
use crate::sampler::Scratch;
use crate::source::{Lists, Source};

/// A checked row, to be asked about. It holds the scratch that it works in.
///
/// Sizes count tokens with mass; a prefix is a number of best tokens, at least 1, and all of them if there are fewer.
pub struct Diagnostics<'a, E = f32> {
    source: Source<'a, E>,
    facts: Facts,
    lists: &'a mut Lists,
}

impl<'a, E: Element> Diagnostics<'a, E> {
    /// A row of logits at temperature 1.
    ///
    /// # Errors
    /// [`Error::RowLength`], [`Error::NotFinite`], [`Error::NoAllowedToken`].
    pub fn new(row: &'a [E], scratch: &'a mut Scratch) -> Result<Self, Error> {
        Self::at(row, 1.0, scratch)
    }

    /// A row of logits at a temperature, a normal positive f32.
    ///
    /// # Errors
    /// [`Error::Parameter`] for another temperature, then as [`new`](Self::new).
    pub fn at(row: &'a [E], temperature: f32, scratch: &'a mut Scratch) -> Result<Self, Error> {
        check_temperature(temperature)?;
        let (source, lists) = Source::logits(row, temperature, Level::best(), scratch)?;
        Ok(Self::over(source, lists))
    }

    fn over(source: Source<'a, E>, lists: &'a mut Lists) -> Self {
        Self { facts: source.facts(), source, lists }
    }

    /// The entropy, in bits.
    ///
    /// # Errors
    /// None that a checked row could meet.
    pub fn entropy(&mut self) -> Result<f64, Error> {
        let mean = self.source.mean(self.lists)?;
        Ok(report::entropy(mean, self.facts.log_total()))
    }

    /// The share of the row's mass that a prefix has.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an empty prefix, as all of the prefix functions.
    pub fn prefix_mass(&mut self, count: usize) -> Result<f64, Error> {
        Ok(report::share(self.prefix(count)?.mass, self.facts.total))
    }

    /// The mean surprise of a draw from a prefix, in bits; surprise is that under the whole row.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an empty prefix.
    pub fn expected_surprise(&mut self, count: usize) -> Result<f64, Error> {
        let (_, mean) = self.prefix_mean(count)?;
        Ok(report::surprise(mean, self.facts.log_total()))
    }

    /// The variance of the surprise of a draw from a prefix, in bits squared. Summed in the order of the ids.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an empty prefix.
    pub fn surprise_variance(&mut self, count: usize) -> Result<f64, Error> {
        let (prefix, mean) = self.prefix_mean(count)?;
        let expected = report::surprise(mean, self.facts.log_total());
        let squares = self.lists.tokens.iter().map(|t| {
            let off = self.facts.surprise(t.logit()) - expected;
            self.facts.measure.mass(t.logit()) as f64 * (off * off)
        });
        Ok(squares.sum::<f64>() / prefix.mass as f64)
    }

    /// The entropy of the distribution that a draw from a prefix has, in bits.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an empty prefix.
    pub fn prefix_entropy(&mut self, count: usize) -> Result<f64, Error> {
        let (prefix, mean) = self.prefix_mean(count)?;
        Ok(report::entropy(mean, report::log_total(prefix.mass)))
    }

    /// The Kullback-Leibler divergence of the distribution that a draw from a prefix has from the row's own, in bits: how much
    /// is lost by cutting there. It is `-log2` of the prefix's mass.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an empty prefix.
    pub fn prefix_kl(&mut self, count: usize) -> Result<f64, Error> {
        let prefix = self.prefix(count)?;
        // log S - log M, in bits.
        Ok(report::entropy(report::log_total(prefix.mass), self.facts.log_total()))
    }

    /// All tokens with mass, best first. This sorts.
    ///
    /// # Errors
    /// None that a checked row could meet.
    pub fn ranking(&mut self) -> Result<Vec<u32>, Error> {
        self.top(self.facts.vocab)
    }

    /// The `count` best tokens with mass, best first.
    ///
    /// # Errors
    /// None that a checked row could meet.
    pub fn top(&mut self, count: usize) -> Result<Vec<u32>, Error> {
        if count == 0 {
            return Ok(Vec::new());
        }
        let (seek, lists) = (Seek::Count(count as u64), &mut *self.lists);
        self.source.with_rank(seek, |ranked| {
            let prefix = ranked.seek(seek)?;
            ranked.ranked(&prefix, &mut lists.tokens)
        })?;
        Ok(self.lists.tokens.iter().map(|t| t.id()).collect())
    }

    fn prefix(&mut self, count: usize) -> Result<Prefix, Error> {
        if count == 0 {
            return Err(too_few("count", count, "at least 1"));
        }
        let seek = Seek::Count(count as u64);
        self.source.with_rank(seek, |ranked| ranked.seek(seek))
    }

    /// A prefix, whose tokens are in the list then, and their mean exponent argument.
    fn prefix_mean(&mut self, count: usize) -> Result<(Prefix, f64), Error> {
        if count == 0 {
            return Err(too_few("count", count, "at least 1"));
        }
        let (seek, lists) = (Seek::Count(count as u64), &mut *self.lists);
        let prefix = self.source.with_rank(seek, |ranked| {
            let prefix = ranked.seek(seek)?;
            ranked.tokens(Some(&prefix), &mut lists.tokens)?;
            Ok(prefix)
        })?;
        let mean = self.facts.mean(&self.lists.tokens, prefix.mass);
        Ok((prefix, mean))
    }
}

impl<'a> Diagnostics<'a> {
    /// A row of weights: finite, at least 0, not all 0.
    ///
    /// # Errors
    /// [`Error::RowLength`]; [`Error::NotFinite`] or [`Error::NegativeWeight`]; [`Error::NoAllowedToken`].
    pub fn from_weights(weights: &'a [f32], scratch: &'a mut Scratch) -> Result<Self, Error> {
        let (source, lists) = Source::weights(weights, scratch)?;
        Ok(Self::over(source, lists))
    }

    /// A row that has been checked and ranked already: nothing is sorted again.
    pub fn from_prepared(row: &'a PreparedRow, scratch: &'a mut Scratch) -> Self {
        Self::over(Source::prepared(row), &mut scratch.lists)
    }
}

fn too_few(name: &'static str, value: usize, expected: &'static str) -> Error {
    Error::Parameter { name, value: Number(value as f64), expected }
}
