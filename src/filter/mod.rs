//! The filters, each over what the ones before it left, and the draw. All in terms of [`Ranked`], so that a peaked row and
//! a flat one go through the same rules.

mod epsilon;
mod min_p;
mod top_k;
mod top_p;
mod typical;

pub(crate) use typical::{Deviant, Memory as TypicalMemory, Typical};

use crate::fraction;
use crate::kernels::{Candidate, Scale};
use crate::params::SamplingParams;
use crate::rank::{Alive, Need, Ranked, Seek, agree};

/// The filters of a parameter set that can drop a token of a row of a given length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stages {
    pub top_k: Option<u64>,
    pub top_p: Option<f64>,
    pub min_p: Option<f64>,
    pub typical_p: Option<f64>,
    pub epsilon: Option<f64>,
}

impl Stages {
    pub fn new(params: &SamplingParams, vocab: usize) -> Self {
        Self {
            top_k: params.top_k.map(u64::from).filter(|&k| k < vocab as u64),
            top_p: params.top_p.filter(|&p| p < 1.0),
            min_p: params.min_p.filter(|&p| p > 0.0),
            typical_p: params.typical_p,
            epsilon: params.epsilon.filter(|&p| p > 0.0),
        }
    }

    /// Whether typical sampling sees the whole row.
    pub fn typical_of_all(&self) -> bool {
        let before = self.top_k.is_some() || self.top_p.is_some() || self.min_p.is_some();
        self.typical_p.is_some() && !before
    }

    /// Whether anything can be dropped: typical sampling at 1 only changes the order.
    fn truncates(&self) -> bool {
        let filters = self.top_p.is_some() || self.min_p.is_some() || self.epsilon.is_some();
        self.top_k.is_some() || filters || self.typical_p.is_some_and(|p| p < 1.0)
    }
}

/// The outcome of filters and draw.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decision {
    /// The drawn token.
    pub token: Candidate,
    /// Number and mass of the kept tokens, where filters truncate.
    pub kept: Option<Kept>,
}

/// A kept set: what it takes to say of any token whether it is in it.
#[derive(Clone, Debug, Copy)]
pub(crate) struct Kept {
    pub count: u64,
    pub mass: u64,
    /// The last rank that can be in the set.
    pub bound: Candidate,
    /// The smallest mass that can be in the set.
    pub least: u64,
    /// After typical sampling: the mean, then the largest deviation and the last id at that deviation.
    pub typical: Option<(f64, f64, u32)>,
}

impl Kept {
    /// Whether a token of the row is in the set.
    pub fn contains(&self, token: Candidate, scale: Scale) -> bool {
        let near = self.typical.is_none_or(|(mean, largest, last)| {
            let deviation = (f64::from(scale.argument(token.logit())) - mean).abs();
            deviation < largest || (deviation == largest && token.id() <= last)
        });
        near && token <= self.bound && scale.mass(token.logit()) >= self.least
    }
}

/// What the filters leave that keep a prefix of the rank. Epsilon comes after typical sampling, which doesn't.
pub(crate) fn prefix<R: Ranked>(stages: &Stages, ranked: &mut R) -> Result<Alive, Need> {
    let mut alive = Alive::All;
    if let Some(k) = stages.top_k {
        alive = top_k::apply(ranked, alive, k)?;
    }
    if let Some(p) = stages.top_p {
        alive = top_p::apply(ranked, alive, p)?;
    }
    if let Some(p) = stages.min_p {
        alive = min_p::apply(ranked, alive, p)?;
    }
    match stages.epsilon {
        Some(p) if stages.typical_p.is_none() => epsilon::apply(ranked, alive, p),
        _ => Ok(alive),
    }
}

/// Filters, then draws.
pub(crate) fn decide<R: Ranked>(
    stages: &Stages,
    u: f64,
    ranked: &mut R,
    typical: &mut Typical<'_>,
) -> Result<Decision, Need> {
    let alive = prefix(stages, ranked)?;
    if let Some(p) = stages.typical_p {
        let decision = typical.decide(ranked, alive, p, stages.epsilon, u)?;
        return Ok(Decision { kept: decision.kept.filter(|_| stages.truncates()), ..decision });
    }
    let drawn = agree(ranked, alive.mass(ranked)?, |mass| Seek::Mass(fraction::floor(u, mass)))?;
    let kept = match alive {
        Alive::All => None,
        Alive::Prefix(p) => {
            Some(Kept { count: p.count, mass: p.mass, bound: p.bound, least: 1, typical: None })
        }
    };
    Ok(Decision { token: drawn.bound, kept })
}
