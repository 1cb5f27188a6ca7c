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

use crate::element::Element;
use crate::error::{Error, Number};
use crate::filter::{self, Deviant, Stages};
use crate::fraction;
use crate::level::Level;
use crate::measure::Facts;
use crate::mirostat::zipf_exponent;
use crate::params::{SamplingParams, check_temperature};
use crate::prepared::PreparedRow;
use crate::rank::{Alive, Prefix, Seek};
use crate::report;
use crate::sampler::Scratch;
use crate::select::{Buffers, Target, select};
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

    /// The exponent of the Zipf law through the `m` best tokens, as Mirostat 1 estimates it; `None` for fewer than two.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an `m` below 2.
    pub fn zipf_exponent(&mut self, m: usize) -> Result<Option<f64>, Error> {
        if m < 2 {
            return Err(too_few("m", m, "at least 2"));
        }
        let (measure, lists) = (self.facts.measure, &mut *self.lists);
        let first = Seek::Count(m as u64);
        self.source.with_rank(first, |ranked| zipf_exponent(ranked, m as u64, measure, lists))
    }

    /// Mirostat 1's `k` for a `mu` in bits.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an `m` below 2 or a `mu` that is not finite.
    pub fn estimated_k(&mut self, mu: f64, m: usize) -> Result<usize, Error> {
        check_mu(mu)?;
        let slope = self.zipf_exponent(m)?;
        Ok(slope.map_or(1, |slope| report::mirostat_k(slope, mu, self.facts.vocab)))
    }

    /// How many tokens Mirostat 2 keeps for a `mu` in bits.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a `mu` that is not finite.
    pub fn v2_len(&mut self, mu: f64) -> Result<usize, Error> {
        check_mu(mu)?;
        let seek = self.facts.seek_surprise(mu);
        let prefix = self.source.with_rank(seek, |ranked| ranked.seek(seek))?;
        Ok(prefix.count as usize)
    }

    /// How many tokens top-p keeps.
    ///
    /// # Errors
    /// [`Error::Parameter`] outside (0, 1].
    pub fn top_p_len(&mut self, p: f64) -> Result<usize, Error> {
        self.len_of(SamplingParams::new().with_top_p(p))
    }

    /// How many tokens min-p keeps.
    ///
    /// # Errors
    /// [`Error::Parameter`] outside [0, 1].
    pub fn min_p_len(&mut self, p: f64) -> Result<usize, Error> {
        self.len_of(SamplingParams::new().with_min_p(p))
    }

    /// How many tokens the epsilon cut-off keeps.
    ///
    /// # Errors
    /// [`Error::Parameter`] outside [0, 1).
    pub fn epsilon_len(&mut self, epsilon: f64) -> Result<usize, Error> {
        self.len_of(SamplingParams::new().with_epsilon(epsilon))
    }

    /// How many tokens typical sampling keeps.
    ///
    /// # Errors
    /// [`Error::Parameter`] outside (0, 1].
    pub fn typical_len(&mut self, p: f64) -> Result<usize, Error> {
        SamplingParams::new().with_typical_p(p).check()?;
        let mut deviants = self.deviants()?;
        let mass = |d: &Deviant| self.facts.measure.mass(d.token.logit());
        let mut masses = deviants.iter().map(mass).collect();
        let cut = fraction::cut(p, self.facts.total);
        let target = Target::Mass(cut.saturating_sub(1));
        let found = select(&mut deviants, &mut masses, target, &mut Buffers::default());
        Ok(found.ok_or(Error::NoAllowedToken)?.count as usize)
    }

    /// All tokens with mass in the order of typical sampling: those whose surprise is nearest to the entropy first. This sorts.
    ///
    /// # Errors
    /// None that a checked row could meet.
    pub fn typical_order(&mut self) -> Result<Vec<u32>, Error> {
        let mut deviants = self.deviants()?;
        deviants.sort_unstable_by_key(|d| (crate::select::Keyed::key(d), d.token.id()));
        Ok(deviants.iter().map(|d| d.token.id()).collect())
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

    /// How many tokens a filter keeps.
    fn len_of(&mut self, params: SamplingParams) -> Result<usize, Error> {
        params.check()?;
        let vocab = self.facts.vocab;
        let stages = Stages::new(&params, vocab);
        self.source.with_rank(Seek::Mass(0), |mut ranked| {
            let kept = match filter::prefix(&stages, &mut ranked)? {
                Alive::Prefix(prefix) => prefix,
                Alive::All => ranked.seek(Seek::Count(vocab as u64))?,
            };
            Ok(kept.count as usize)
        })
    }

    /// All tokens with mass, by id, with their distance from the mean.
    fn deviants(&mut self) -> Result<Vec<Deviant>, Error> {
        let mean = self.source.mean(self.lists)?;
        let tokens = &mut self.lists.tokens;
        self.source.with_rank(Seek::Count(u64::MAX), |ranked| ranked.all(tokens))?;
        let measure = self.facts.measure;
        let deviant = |&t: &_| Deviant::new(t, measure.argument(t.logit()), mean);
        Ok(tokens.iter().map(deviant).collect())
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

fn check_mu(mu: f64) -> Result<(), Error> {
    if mu.is_finite() {
        return Ok(());
    }
    Err(Error::Parameter { name: "mu", value: Number(mu), expected: "finite" })
}
