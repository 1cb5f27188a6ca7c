//! A row that is ranked once, for many draws.

use crate::element::Element;
use crate::error::Error;
use crate::fraction;
use crate::head::Head;
use crate::kernels::{Candidate, mass, weights_into};
use crate::level::Level;
use crate::measure::{Facts, Measure};
use crate::params::check_temperature;
use crate::rank::{Ranked, Seek};
use crate::row::{Row, check_draw};
use crate::weights;

/// A checked row with its masses and its whole rank, made once: for many draws from one row, by one
/// [`Session`](crate::mirostat::Session) or by many at a time. It doesn't change and borrows nothing.
///
/// Making one sorts the tokens that have mass, which costs more than a few draws from the row itself; after that a draw takes
/// a few look-ups, whatever the row's length. The results are the same.
///
/// ```
/// use sortless::{PreparedRow, Scratch};
/// use sortless::mirostat::{Config, Session, Version};
/// let row = PreparedRow::from_logits(&[2.0f32, 0.0, 1.0])?;
/// assert_eq!(row.ranking().collect::<Vec<_>>(), [0, 2, 1]);
/// let mut session = Session::new(Config::new(1.0)?, Version::V2);
/// let step = session.sample_prepared(&row, 0.9, &mut Scratch::new())?;
/// assert_eq!(step.probability, row.probability(step.token)?);
/// # Ok::<(), sortless::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct PreparedRow {
    facts: Facts,
    /// All values, by id.
    values: Vec<f32>,
    /// The tokens with mass, by rank, with their weights and cumulative masses.
    tokens: Vec<Candidate>,
    weights: Vec<f32>,
    sums: Vec<u64>,
}

impl PreparedRow {
    /// A row of logits, at temperature 1.
    ///
    /// # Errors
    /// [`Error::RowLength`], [`Error::NotFinite`], [`Error::NoAllowedToken`], in this order.
    pub fn from_logits<E: Element>(row: &[E]) -> Result<Self, Error> {
        Self::from_logits_at(row, 1.0)
    }

    /// A row of logits at a temperature, a normal positive f32.
    ///
    /// # Errors
    /// [`Error::Parameter`] for another temperature, then as [`from_logits`](Self::from_logits).
    pub fn from_logits_at<E: Element>(row: &[E], temperature: f32) -> Result<Self, Error> {
        check_temperature(temperature)?;
        let level = Level::best();
        let scale = Row::new(row, temperature, 0.0, level, None)?.scale;
        let values: Vec<f32> = row.iter().map(|v| v.to_f32()).collect();
        let mut weights = vec![0.0; values.len()];
        weights_into(level, &values, scale, &mut weights);
        Ok(Self::rank(Measure::Logits(scale), values, weights))
    }

    /// A row of weights: finite, at least 0, not all 0. They need not sum to anything.
    ///
    /// # Errors
    /// [`Error::RowLength`]; [`Error::NotFinite`] or [`Error::NegativeWeight`], whichever has the lowest index;
    /// [`Error::NoAllowedToken`] if all are 0.
    pub fn from_weights(values: &[f32]) -> Result<Self, Error> {
        let measure = Measure::Weights(weights::check(values)?);
        let weights = values.iter().map(|&v| measure.weight(v)).collect();
        Ok(Self::rank(measure, values.to_vec(), weights))
    }

    fn rank(measure: Measure, values: Vec<f32>, mut weights: Vec<f32>) -> Self {
        let with_mass = |(id, &value): (usize, &f32)| {
            (mass(weights[id]) != 0).then(|| Candidate::new(id as u32, value))
        };
        let mut tokens: Vec<Candidate> = values.iter().enumerate().filter_map(with_mass).collect();
        tokens.sort_unstable();
        weights = tokens.iter().map(|t| weights[t.id() as usize]).collect();
        let mut total = 0;
        let sums: Vec<u64> = weights
            .iter()
            .map(|&w| {
                total += mass(w);
                total
            })
            .collect();
        Self { facts: Facts::new(measure, values.len(), total), values, tokens, weights, sums }
    }

    pub(crate) fn facts(&self) -> Facts {
        self.facts
    }

    pub(crate) fn values(&self) -> &[f32] {
        &self.values
    }

    pub(crate) fn head(&self) -> Head<'_> {
        Head::whole(&self.tokens, &self.weights, &self.sums)
    }

    /// The row's length, masked tokens included.
    pub fn vocabulary(&self) -> usize {
        self.values.len()
    }

    /// How many tokens have mass.
    pub fn with_mass(&self) -> usize {
        self.tokens.len()
    }

    /// The ids of the tokens with mass, best first.
    pub fn ranking(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.tokens.iter().map(|t| t.id())
    }

    /// A token's share of the row's mass, in `[0, 1]`; 0 for a masked one.
    ///
    /// # Errors
    /// [`Error::TokenId`] outside the row.
    pub fn probability(&self, token: u32) -> Result<f64, Error> {
        Ok(self.facts.probability(self.value(token)?))
    }

    /// A token's surprise in bits; finite, but for a masked token, which has none.
    ///
    /// # Errors
    /// [`Error::TokenId`] outside the row.
    pub fn surprise(&self, token: u32) -> Result<Option<f64>, Error> {
        let value = self.value(token)?;
        let unmasked = self.facts.token(token, value);
        Ok(unmasked.map(|_| self.facts.surprise(value)))
    }

    /// Draws from the first `count` ranked tokens (at least 1; more than have mass are all) with `u` in `[0, 1)`: the first
    /// whose cumulative mass exceeds `u` of theirs.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a count of 0, [`Error::Draw`].
    ///
    /// ```
    /// let row = sortless::PreparedRow::from_weights(&[1.0, 3.0, 0.0, 2.0])?;
    /// assert_eq!(row.draw_prefix(2, 0.59)?, 1); // 3 of 5
    /// assert_eq!(row.draw_prefix(2, 0.61)?, 3);
    /// # Ok::<(), sortless::Error>(())
    /// ```
    pub fn draw_prefix(&self, count: usize, u: f64) -> Result<u32, Error> {
        let Some(last) = count.min(self.sums.len()).checked_sub(1) else {
            return Err(Error::Parameter {
                name: "count",
                value: crate::error::Number(0.0),
                expected: "at least 1",
            });
        };
        check_draw(u)?;
        let target = Seek::Mass(fraction::floor(u, self.sums[last]));
        let found = self.head().seek(target).ok();
        Ok(found.ok_or(Error::NoAllowedToken)?.bound.id())
    }

    fn value(&self, token: u32) -> Result<f32, Error> {
        let len = self.values.len();
        let value = self.values.get(token as usize).copied();
        value.ok_or(Error::TokenId { id: token, len })
    }
}
