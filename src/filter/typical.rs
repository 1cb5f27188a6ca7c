//! Locally typical sampling (Meister et al., 2023): the tokens whose surprise is nearest to the entropy.

use super::{Decision, Kept};
use crate::fraction;
use crate::kernels::{Candidate, Moments, Scale, mass, weights_into};
use crate::level::Level;
use crate::rank::{Alive, Need, Ranked};
use crate::select::{Buffers, Keyed, Target, select};

/// A token with its distance from the mean: `abs(x - mean)` is `abs(surprise - entropy)`, since the logs cancel.
#[derive(Clone, Copy, Debug)]
struct Deviant {
    deviation: f64,
    token: Candidate,
}

impl Keyed for Deviant {
    fn key(&self) -> u64 {
        self.deviation.to_bits() // positive floats order as their bits
    }
}

/// Reused memory of typical sampling.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    tokens: Vec<Candidate>,
    logits: Vec<f32>,
    weights: Vec<f32>,
    deviants: Vec<Deviant>,
    masses: Vec<u64>,
    work: (Vec<Deviant>, Vec<u64>),
    buffers: Buffers,
}

impl Memory {
    /// Selects from copies of the lists, which stay.
    fn seek(&mut self, target: Target) -> Option<crate::select::Found<Deviant>> {
        self.work.0.clone_from(&self.deviants);
        self.work.1.clone_from(&self.masses);
        select(&mut self.work.0, &mut self.work.1, target, &mut self.buffers)
    }

    /// Drops what doesn't satisfy `keep`; returns number and mass of what does.
    fn retain(&mut self, keep: impl Fn(&Deviant, u64) -> bool) -> (u64, u64) {
        let (mut n, mut total) = (0, 0);
        for i in 0..self.deviants.len() {
            let (deviant, mass) = (self.deviants[i], self.masses[i]);
            if keep(&deviant, mass) {
                (self.deviants[n], self.masses[n]) = (deviant, mass);
                n += 1;
                total += mass;
            }
        }
        self.deviants.truncate(n);
        self.masses.truncate(n);
        (n as u64, total)
    }
}

/// The filter with what it needs of the row.
pub(crate) struct Typical<'a> {
    pub level: Level,
    pub scale: Scale,
    pub memory: &'a mut Memory,
}

impl Typical<'_> {
    /// Keeps the typical tokens, then those of them with at least `epsilon` of the mass, then draws, all in the
    /// filter's own order: by deviation, then by id.
    pub fn decide(
        &mut self,
        ranked: &mut impl Ranked,
        alive: Alive,
        p: f64,
        epsilon: Option<f64>,
        u: f64,
    ) -> Result<Decision, Need> {
        let prefix = match &alive {
            Alive::All => None,
            Alive::Prefix(prefix) => Some(prefix),
        };
        let memory = &mut *self.memory;
        ranked.tokens(prefix, &mut memory.tokens)?;
        let moments = self.measure();
        let memory = &mut *self.memory;
        let mean = moments.mean();
        memory.deviants.clear();
        memory.masses.clear();
        for (&token, &weight) in memory.tokens.iter().zip(&memory.weights) {
            let x = f64::from(self.scale.argument(token.logit()));
            memory.deviants.push(Deviant { deviation: (x - mean).abs(), token });
            memory.masses.push(mass(weight));
        }

        let cut = fraction::cut(p, moments.mass);
        // There is always a token: the prefix is not empty. Asking for more depth is the answer that can't be wrong.
        let last = memory.seek(Target::Mass(cut.saturating_sub(1))).ok_or(Need::Depth)?;
        let edge = (last.entry.deviation, last.entry.token.id());
        let (mut count, mut total) = memory.retain(|d, _| {
            d.deviation < edge.0 || (d.deviation == edge.0 && d.token.id() <= edge.1)
        });

        let (mut bound, mut least) = (prefix.map_or(Candidate::LAST, |p| p.bound), 1);
        if let Some(epsilon) = epsilon {
            least = fraction::cut(epsilon, total);
            if memory.masses.iter().any(|&m| m >= least) {
                (count, total) = memory.retain(|_, m| m >= least);
            } else if let Some(best) = memory.deviants.iter().map(|d| d.token).min() {
                (count, total) = memory.retain(|d, _| d.token == best);
                (bound, least) = (best, 1);
            }
        }
        let drawn = memory.seek(Target::Mass(fraction::floor(u, total))).ok_or(Need::Depth)?;
        let kept = Kept { count, mass: total, bound, least, typical: Some((mean, edge.0, edge.1)) };
        Ok(Decision { token: drawn.entry.token, kept: Some(kept) })
    }

    /// The weights and the moments of the alive tokens.
    fn measure(&mut self) -> Moments {
        let memory = &mut *self.memory;
        memory.logits.clear();
        memory.logits.extend(memory.tokens.iter().map(|t| t.logit()));
        memory.weights.resize(memory.logits.len(), 0.0);
        weights_into(self.level, &memory.logits, self.scale, &mut memory.weights);
        let mut moments = Moments::default();
        for (&logit, &weight) in memory.logits.iter().zip(&memory.weights) {
            moments.add(weight, self.scale.argument(logit));
        }
        moments
    }
}
