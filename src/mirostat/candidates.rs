//! The set that a step would draw from, for hosts that draw themselves.

use super::Session;
use crate::element::Element;
use crate::error::Error;
use crate::fraction;
use crate::prepared::PreparedRow;
use crate::report;
use crate::row::check_draw;
use crate::sampler::Scratch;
use crate::source::{Lists, Source};

/// The tokens that a step would draw from, by rank, in aligned lists. After drawing one, tell the session with
/// [`Session::observe`].
///
/// ```
/// use sortless::{Scratch, mirostat::{Config, Session, Version}};
/// let (row, mut scratch) = ([0.0f32, 5.0, 4.0], Scratch::new());
/// let mut session = Session::new(Config::new(1.0)?, Version::V2);
/// let set = session.candidates(&row, &mut scratch)?;
/// assert_eq!(set.ids(), [1, 2]);
/// let mine = set.draw(0.9)?;
/// assert_eq!(session.fork().sample(&row, 0.9, &mut scratch)?, session.observe(&row, mine, &mut scratch)?);
/// # Ok::<(), sortless::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Candidates {
    ids: Vec<u32>,
    probabilities: Vec<f64>,
    conditional: Vec<f64>,
    /// Cumulative masses.
    sums: Vec<u64>,
    mu: f64,
    retained: f64,
}

impl Candidates {
    /// The token ids.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// The tokens' shares of the whole row's mass.
    pub fn probabilities(&self) -> &[f64] {
        &self.probabilities
    }

    /// The tokens' shares of the set's mass.
    pub fn conditional_probabilities(&self) -> &[f64] {
        &self.conditional
    }

    /// How many tokens the set has; at least 1.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// The set's share of the row's mass.
    pub fn retained(&self) -> f64 {
        self.retained
    }

    /// The session's `mu`, in bits, which made the set.
    pub fn mu(&self) -> f64 {
        self.mu
    }

    /// A token's place in the lists; `None` if it is not in the set. Linear in the set's size.
    pub fn position(&self, token: u32) -> Option<usize> {
        self.ids.iter().position(|&id| id == token)
    }

    /// A token's share of the whole row's mass, if it is in the set.
    pub fn probability(&self, token: u32) -> Option<f64> {
        self.probabilities.get(self.position(token)?).copied()
    }

    /// A token's share of the set's mass, if it is in the set.
    pub fn conditional_probability(&self, token: u32) -> Option<f64> {
        self.conditional.get(self.position(token)?).copied()
    }

    /// The token that the session would draw with this `u` in `[0, 1)`.
    ///
    /// # Errors
    /// [`Error::Draw`].
    pub fn draw(&self, u: f64) -> Result<u32, Error> {
        check_draw(u)?;
        let mass = self.sums.last().copied().unwrap_or(0);
        let target = fraction::floor(u, mass);
        let place = self.sums.partition_point(|&sum| sum <= target);
        self.ids.get(place).copied().ok_or(Error::NoAllowedToken)
    }
}

impl Session {
    /// The tokens that a step over this row of logits would draw from. Nothing moves.
    ///
    /// # Errors
    /// What is wrong with the row, as [`sample`](Self::sample).
    pub fn candidates<E: Element>(
        &self,
        row: &[E],
        scratch: &mut Scratch,
    ) -> Result<Candidates, Error> {
        let (source, lists) = self.logits(row, scratch)?;
        self.list(source, lists)
    }

    /// The tokens that a step over this row of weights would draw from. Nothing moves.
    ///
    /// # Errors
    /// What is wrong with the row, as [`sample_weights`](Self::sample_weights).
    pub fn candidates_weights(
        &self,
        weights: &[f32],
        scratch: &mut Scratch,
    ) -> Result<Candidates, Error> {
        let (source, lists) = self.weights(weights, scratch)?;
        self.list(source, lists)
    }

    /// The tokens that a step over this prepared row would draw from. Nothing moves.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if the row was prepared at another temperature.
    pub fn candidates_prepared(
        &self,
        row: &PreparedRow,
        scratch: &mut Scratch,
    ) -> Result<Candidates, Error> {
        self.list(self.prepared(row)?, &mut scratch.lists)
    }

    fn list<E: Element>(
        &self,
        mut source: Source<'_, E>,
        lists: &mut Lists,
    ) -> Result<Candidates, Error> {
        let facts = source.facts();
        let rule = self.rule(&facts);
        let kept = source.with_rank(rule.first(), |ranked| {
            let kept = rule.kept(ranked, lists)?;
            ranked.ranked(&kept, &mut lists.tokens)?;
            Ok(kept)
        })?;
        let mut set = Candidates {
            ids: Vec::with_capacity(lists.tokens.len()),
            probabilities: Vec::with_capacity(lists.tokens.len()),
            conditional: Vec::with_capacity(lists.tokens.len()),
            sums: Vec::with_capacity(lists.tokens.len()),
            mu: self.mu(),
            retained: report::share(kept.mass, facts.total),
        };
        let mut sum = 0;
        for token in &lists.tokens {
            let mass = facts.measure.mass(token.logit());
            sum += mass;
            set.ids.push(token.id());
            set.probabilities.push(report::share(mass, facts.total));
            set.conditional.push(report::share(mass, kept.mass));
            set.sums.push(sum);
        }
        Ok(set)
    }
}
