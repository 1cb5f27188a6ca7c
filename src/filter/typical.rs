//! Locally typical sampling (Meister et al., 2023): the tokens whose surprise is nearest to the entropy.

use super::{Decision, Kept};
use crate::fraction;
use crate::kernels::{Candidate, Moments, Scale, mass};
use crate::level::Level;
use crate::rank::{Alive, Need, Ranked};
use crate::ring::ALL;
use crate::select::{Buffers, Found, Keyed, Target, select};
use crate::weighing::Weighing;

/// A token with its distance from the mean: `abs(x - mean)` is `abs(surprise - entropy)`, since the logs cancel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deviant {
    deviation: f64,
    pub token: Candidate,
}

impl Deviant {
    /// A token whose exponent argument is `x`.
    pub fn new(token: Candidate, x: f64, mean: f64) -> Self {
        Self { deviation: (x - mean).abs(), token }
    }
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
    weighing: Weighing,
    deviants: Vec<Deviant>,
    masses: Vec<u64>,
    work: (Vec<Deviant>, Vec<u64>),
    buffers: Buffers,
}

impl Memory {
    /// Selects from copies of the lists, which stay.
    fn seek(&mut self, target: Target) -> Option<Found<Deviant>> {
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
    /// The moments of the whole row, where they are known.
    pub whole: Option<Moments>,
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
        let whole = match (&alive, self.whole) {
            (Alive::Prefix(_), _) => None,
            (Alive::All, Some(moments)) => Some(moments),
            (Alive::All, None) => Some(ranked.moments()?),
        };
        if let Some(moments) = whole.filter(|_| epsilon.is_none()) {
            match self.by_rings(ranked, moments, p, u) {
                Err(Need::Depth) => {}
                decided => return decided,
            }
        }
        self.by_tokens(ranked, alive, whole, [p, u], epsilon)
    }

    /// Looks only at the tokens around the edge and around the draw.
    fn by_rings(
        &mut self,
        ranked: &mut impl Ranked,
        moments: Moments,
        p: f64,
        u: f64,
    ) -> Result<Decision, Need> {
        let mean = moments.mean();
        let cut = fraction::cut(p, moments.mass);
        let target = cut.saturating_sub(1);
        let draw = |kept| fraction::floor(u, kept);
        ranked.foresee(moments, target, &draw);
        let edge = self.on_ring(ranked, mean, target)?;
        let drawn = self.on_ring(ranked, mean, draw(edge.mass))?;
        let kept = Kept {
            count: edge.count,
            mass: edge.mass,
            bound: Candidate::LAST,
            least: 1,
            typical: Some((mean, edge.entry.deviation, edge.entry.token.id())),
        };
        Ok(Decision { token: drawn.entry.token, kept: Some(kept) })
    }

    /// The token where the cumulative mass in the filter's order first exceeds `target`.
    fn on_ring(
        &mut self,
        ranked: &mut impl Ranked,
        mean: f64,
        target: u64,
    ) -> Result<Found<Deviant>, Need> {
        // Mostly the first ring is it; the widest is everything.
        for width in [1, 16, ALL] {
            let inside = ranked.ring(mean, target, width, &mut self.memory.tokens)?;
            self.spread(mean);
            let Some(rest) = target.checked_sub(inside.mass) else { continue };
            let Memory { deviants, masses, buffers, .. } = &mut *self.memory;
            let Some(found) = select(deviants, masses, Target::Mass(rest), buffers) else {
                continue;
            };
            let deviation = found.entry.deviation;
            if found.mass > rest && deviation > inside.within && deviation < inside.beyond {
                let (mass, count) = (found.mass + inside.mass, found.count + inside.count);
                return Ok(Found { mass, count, ..found });
            }
        }
        Err(Need::Depth)
    }

    /// Looks at all alive tokens, or at those of them that are surely nearest to the mean. `whole` are the moments of all
    /// tokens, if they are alive.
    fn by_tokens(
        &mut self,
        ranked: &mut impl Ranked,
        alive: Alive,
        whole: Option<Moments>,
        [p, u]: [f64; 2],
        epsilon: Option<f64>,
    ) -> Result<Decision, Need> {
        let prefix = match &alive {
            Alive::All => None,
            Alive::Prefix(prefix) => Some(prefix),
        };
        let missing = ranked.tokens(prefix, &mut self.memory.tokens)?;
        let moments = whole.unwrap_or_else(|| self.measure());
        let mean = moments.mean();
        self.spread(mean);
        let memory = &mut *self.memory;

        let target = fraction::cut(p, moments.mass).saturating_sub(1);
        // There is always a token: the prefix is not empty. Asking for more depth is the answer that can't be wrong.
        let last = memory.seek(Target::Mass(target)).ok_or(Need::Depth)?;
        let Deviant { deviation, token } = last.entry;
        // A token that is missing lies below the others and so on the far side of the mean.
        let nearest_missing = missing.map(|l| mean - f64::from(self.scale.argument(l)));
        if last.mass <= target || nearest_missing.is_some_and(|d| d <= deviation) {
            return Err(Need::Depth);
        }
        let nearer = |d: &Deviant| d.deviation < deviation;
        let (mut count, mut total) = memory
            .retain(|d, _| nearer(d) || (d.deviation == deviation && d.token.id() <= token.id()));

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
        let typical = Some((mean, deviation, token.id()));
        let kept = Kept { count, mass: total, bound, least, typical };
        Ok(Decision { token: drawn.entry.token, kept: Some(kept) })
    }

    /// The moments of the collected tokens.
    fn measure(&mut self) -> Moments {
        let Memory { tokens, weighing, .. } = &mut *self.memory;
        let mut moments = Moments::default();
        for (token, &weight) in tokens.iter().zip(weighing.weigh(self.level, self.scale, tokens)) {
            moments.add(weight, self.scale.argument(token.logit()));
        }
        moments
    }

    /// The deviations and the masses of the collected tokens.
    fn spread(&mut self, mean: f64) {
        let Memory { tokens, weighing, deviants, masses, .. } = &mut *self.memory;
        deviants.clear();
        masses.clear();
        for (&token, &weight) in tokens.iter().zip(weighing.weigh(self.level, self.scale, tokens)) {
            let x = f64::from(self.scale.argument(token.logit()));
            deviants.push(Deviant::new(token, x, mean));
            masses.push(mass(weight));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::ONE;
    use crate::rank::{Bracket, Inside, Prefix, Seek};

    /// Tokens at logits 0, -1 and -2 around a mean of -1, of which some are listed alone.
    struct Narrow {
        listed: Vec<Candidate>,
        inside: Inside,
        all: Vec<Candidate>,
        /// The largest logit that a token which is not in the list may have.
        missing: Option<f32>,
    }

    impl Ranked for Narrow {
        fn ring(
            &mut self,
            _: f64,
            _: u64,
            width: usize,
            out: &mut Vec<Candidate>,
        ) -> Result<Inside, Need> {
            let everything = Inside { count: 0, mass: 0, within: -1.0, beyond: f64::INFINITY };
            let (listed, inside) = match width {
                ALL => (&self.all, everything),
                _ => (&self.listed, self.inside),
            };
            out.clone_from(listed);
            Ok(inside)
        }

        fn seek(&mut self, _: Seek) -> Result<Prefix, Need> {
            Err(Need::Depth)
        }

        fn total(&self) -> Result<Bracket, Need> {
            Err(Need::Total)
        }

        fn tokens(
            &mut self,
            _: Option<&Prefix>,
            out: &mut Vec<Candidate>,
        ) -> Result<Option<f32>, Need> {
            out.clone_from(&self.listed);
            Ok(self.missing)
        }
    }

    /// A token on the other side, as far from the mean and not listed, may have the smaller id.
    #[test]
    fn a_ring_decides_nothing_at_the_distances_of_its_edges() {
        let scale = Scale::checked(0.0, 1.0);
        let (near, far) = (Candidate::new(2, -1.0), Candidate::new(1, -2.0));
        let on_ring = |mut ring: Narrow, target| {
            let mut memory = Memory::default();
            let level = Level::best();
            let mut typical = Typical { level, scale, whole: None, memory: &mut memory };
            let found = typical.on_ring(&mut ring, -1.0, target).unwrap();
            (found.entry.token.id(), found.count)
        };
        // Before the outer edge: the token beyond it comes first.
        let (listed, all) = (vec![far, near], vec![Candidate::new(0, 0.0), far, near]);
        let inside = Inside { count: 0, mass: 0, within: -1.0, beyond: 1.0 };
        assert_eq!(
            on_ring(Narrow { listed, inside, all, missing: None }, scale.mass(-1.0)),
            (0, 2)
        );
        // At the inner edge: the token within it comes last.
        let (listed, all) = (vec![far], vec![far, near, Candidate::new(5, 0.0)]);
        let mass = scale.mass(-1.0) + scale.mass(0.0);
        let inside = Inside { count: 2, mass, within: 1.0, beyond: f64::INFINITY };
        assert_eq!(on_ring(Narrow { listed, inside, all, missing: None }, mass), (5, 3));
    }

    /// What is missing lies below, and may be as near to the mean as the last token that is kept.
    #[test]
    fn a_missing_token_that_is_as_near_asks_for_more() {
        let scale = Scale::checked(0.0, 1.0);
        let inside = Inside { count: 0, mass: 0, within: -1.0, beyond: 1.0 };
        let kept = |missing| {
            let listed = vec![Candidate::new(1, 0.0), Candidate::new(2, -1.0)];
            let mut ranked = Narrow { listed, inside, all: Vec::new(), missing: Some(missing) };
            // The mean is -1, and half of the mass is more than that of the token there.
            let whole = Moments { mass: ONE, first: -(ONE as i64), count: 3 };
            let mut memory = Memory::default();
            let level = Level::best();
            let mut typical = Typical { level, scale, whole: None, memory: &mut memory };
            let decided = typical.by_tokens(&mut ranked, Alive::All, Some(whole), [0.5, 0.0], None);
            decided.map(|decision| decision.kept.unwrap().count)
        };
        assert_eq!(kept(-2.5), Ok(2));
        assert_eq!(kept(-2.0), Err(Need::Depth));
        assert_eq!(kept(-1.5), Err(Need::Depth));
    }
}
