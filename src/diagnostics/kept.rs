//! What Mirostat and each filter would keep.

use super::{Diagnostics, too_few};
use crate::element::Element;
use crate::error::{Error, Number};
use crate::filter::{self, Deviant, Stages};
use crate::fraction;
use crate::mirostat::zipf_exponent;
use crate::params::SamplingParams;
use crate::rank::{Alive, Seek};
use crate::report;
use crate::select::{Buffers, Keyed, Target, select};

impl<E: Element> Diagnostics<'_, E> {
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
        deviants.sort_unstable_by_key(|d| (d.key(), d.token.id()));
        Ok(deviants.iter().map(|d| d.token.id()).collect())
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

fn check_mu(mu: f64) -> Result<(), Error> {
    if mu.is_finite() {
        return Ok(());
    }
    Err(Error::Parameter { name: "mu", value: Number(mu), expected: "finite" })
}
