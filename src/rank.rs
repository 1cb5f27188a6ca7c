//! The ranked order of a row as the filters see it: something in which one can seek.

use crate::kernels::{Candidate, Moments, ONE, mass, smallest};

/// A non-empty prefix of the rank, all of whose tokens have mass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prefix {
    /// How many tokens it has.
    pub count: u64,
    /// Their exact mass.
    pub mass: u64,
    /// The tokens of the prefix rank up to and with this one, all others after it. Where a mass or a count was
    /// sought it is the last token itself.
    pub bound: Candidate,
}

impl Prefix {
    /// The shorter of two prefixes.
    pub fn shorter(self, other: Self) -> Self {
        if other.count < self.count { other } else { self }
    }
}

/// What to seek: the prefix that ends where this is reached.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Seek {
    /// The first token whose cumulative mass exceeds this.
    Mass(u64),
    /// This many tokens, or all that have mass.
    Count(u64),
    /// All tokens with at least this weight, and mass. At most 1, so that the best token is among them.
    Weight(f32),
    /// All tokens with at least this logit (at most the maximum), and mass.
    Logit(f32),
}

/// Why a decision could not be made with what is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Better bounds on the row's total mass.
    Total,
    /// More of the ranked tokens.
    Depth,
    /// The moments of all tokens.
    Moments,
}

/// Bounds on a mass, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bracket {
    pub low: u64,
    pub high: u64,
}

impl Bracket {
    pub fn exact(mass: u64) -> Self {
        Self { low: mass, high: mass }
    }
}

/// A row's tokens with mass, in rank order.
pub(crate) trait Ranked {
    /// The prefix that ends where `seek` is reached.
    fn seek(&mut self, seek: Seek) -> Result<Prefix, Need>;

    /// What is known of the total mass of all tokens.
    fn total(&self) -> Result<Bracket, Need>;

    /// The tokens of a prefix (all, if `None`) into `out`, by id. Gives the largest logit that a token which is missing
    /// may have, if any may be.
    fn tokens(
        &mut self,
        prefix: Option<&Prefix>,
        out: &mut Vec<Candidate>,
    ) -> Result<Option<f32>, Need>;

    /// All tokens, by id.
    fn all(&mut self, out: &mut Vec<Candidate>) -> Result<(), Need> {
        match self.tokens(None, out)? {
            None => Ok(()),
            Some(_) => Err(Need::Depth),
        }
    }

    /// The moments of all tokens.
    fn moments(&mut self) -> Result<Moments, Need> {
        Err(Need::Moments)
    }

    /// Says where [`ring`](Self::ring) will be asked to look, about, in terms of moments: for the edge, and for the draw, which
    /// depends on what is kept up to the edge. One pass can then look for both.
    fn foresee(&mut self, _moments: Moments, _edge: u64, _draw: &dyn Fn(u64) -> u64) {}

    /// All tokens by their distance from a mean exponent argument: those into `out`, by id, among which the cumulative mass
    /// seems to exceed `target` first. The larger `width`, the more they are; with [`ALL`](crate::ring::ALL) it is certain.
    fn ring(
        &mut self,
        mean: f64,
        target: u64,
        width: usize,
        out: &mut Vec<Candidate>,
    ) -> Result<Inside, Need>;

    /// The tokens of a prefix into `out`, by rank.
    fn ranked(&mut self, prefix: &Prefix, out: &mut Vec<Candidate>) -> Result<(), Need> {
        self.tokens(Some(prefix), out)?;
        out.sort_unstable();
        Ok(())
    }
}

/// What lies inside of a ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inside {
    pub count: u64,
    pub mass: u64,
    /// The ring is only good for what it was asked for if the token found in it is farther from the mean than this: nothing
    /// inside is, besides tokens at the found one's own distance.
    pub within: f64,
    /// And nearer than this: nothing beyond the ring is.
    pub beyond: f64,
}

/// So that the filters, which are generic, also take a `&mut dyn Ranked`.
impl<R: Ranked + ?Sized> Ranked for &mut R {
    fn seek(&mut self, seek: Seek) -> Result<Prefix, Need> {
        (**self).seek(seek)
    }

    fn total(&self) -> Result<Bracket, Need> {
        (**self).total()
    }

    fn tokens(
        &mut self,
        prefix: Option<&Prefix>,
        out: &mut Vec<Candidate>,
    ) -> Result<Option<f32>, Need> {
        (**self).tokens(prefix, out)
    }

    fn moments(&mut self) -> Result<Moments, Need> {
        (**self).moments()
    }

    fn foresee(&mut self, moments: Moments, edge: u64, draw: &dyn Fn(u64) -> u64) {
        (**self).foresee(moments, edge, draw);
    }

    fn ring(
        &mut self,
        mean: f64,
        target: u64,
        width: usize,
        out: &mut Vec<Candidate>,
    ) -> Result<Inside, Need> {
        (**self).ring(mean, target, width, out)
    }

    fn ranked(&mut self, prefix: &Prefix, out: &mut Vec<Candidate>) -> Result<(), Need> {
        (**self).ranked(prefix, out)
    }
}

/// The tokens still alive between two filters.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Alive {
    /// Every token with mass.
    All,
    /// A prefix of the rank.
    Prefix(Prefix),
}

impl Alive {
    /// Their mass.
    pub fn mass(&self, ranked: &impl Ranked) -> Result<Bracket, Need> {
        match self {
            Self::All => ranked.total(),
            Self::Prefix(prefix) => Ok(Bracket::exact(prefix.mass)),
        }
    }

    /// What is left of them inside another prefix.
    pub fn within(self, prefix: Prefix) -> Self {
        Self::Prefix(match self {
            Self::All => prefix,
            Self::Prefix(own) => own.shorter(prefix),
        })
    }
}

/// Seeks what `target` makes of a mass. Where only bounds on the mass are known, both ends must agree; since both
/// a cut and a draw grow with the mass, all that lies between them agrees then, too.
pub(crate) fn agree(
    ranked: &mut impl Ranked,
    mass: Bracket,
    target: impl Fn(u64) -> Seek,
) -> Result<Prefix, Need> {
    let low = ranked.seek(target(mass.low))?;
    if mass.low == mass.high {
        return Ok(low);
    }
    match ranked.seek(target(mass.high)) {
        Ok(high) if high.count == low.count => Ok(low),
        _ => Err(Need::Total),
    }
}

/// The smallest weight whose mass is at least `least`; more than 1 if there is none.
pub(crate) fn weight_of_mass(least: u64) -> f32 {
    if least > ONE {
        return 2.0;
    }
    smallest(0, 1f32.to_bits(), |bits| mass(f32::from_bits(bits)) >= least.max(1), f32::from_bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weight_of_a_mass_is_the_smallest_that_has_it() {
        for least in [1, 2, 3, 1000, ONE / 3, ONE - 1, ONE] {
            let w = weight_of_mass(least);
            assert!(mass(w) >= least && mass(w.next_down()) < least, "{least}");
        }
        assert_eq!(weight_of_mass(0), weight_of_mass(1));
        assert!(weight_of_mass(ONE + 1) > 1.0);
    }
}
