//! The whole rank of a row, for decisions that go deep: a histogram of masses over buckets of weights, refined where
//! something is sought. Nothing is sorted, and integer masses make it the sorted walk's answer.

use crate::element::Element;
use crate::kernels::{
    BUCKETS, Between, Candidate, Histogram, bucket_floor, bucket_of, collect_between, float_of,
    mass, nth_equal, order_of, survey, weights_into,
};
use crate::rank::{Bracket, Inside, Need, Prefix, Ranked, Seek, smallest, weight_of_mass};
use crate::ring::Rings;
use crate::row::Row;
use crate::select::{Buffers, Keyed, Target, select};
use core::ops::RangeInclusive;

impl Keyed for Candidate {
    fn key(&self) -> u64 {
        u64::from(self.rank_key())
    }
}

/// Reused memory of [`Full`].
#[derive(Debug, Default)]
pub(crate) struct Memory {
    masses: Histogram,
    counts: Histogram,
    tokens: Vec<Candidate>,
    logits: Vec<f32>,
    weights: Vec<f32>,
    work: (Vec<Candidate>, Vec<u64>),
    /// The log of each bucket's smallest weight, once it has been asked for.
    floors: Vec<f64>,
    buffers: Buffers,
}

/// From so many tokens on it is worth a pass to see whether they are all equal.
const MANY: u64 = 4096;

/// A token among equals.
struct Equal {
    /// Tokens that rank before all of the equals.
    above: u64,
    /// Equals before this one.
    before: u64,
    /// The mass of each.
    mass: u64,
    token: Candidate,
}

/// All tokens of a row that have mass.
pub(crate) struct Full<'a, E> {
    row: &'a Row<'a, E>,
    memory: &'a mut Memory,
    total: u64,
    /// Whether the counts have been filled: few decisions need them.
    counted: bool,
    /// The bucket whose tokens are collected, and how many tokens rank before it.
    collected: Option<(usize, u64)>,
}

impl<'a, E: Element> Full<'a, E> {
    /// One pass over the row.
    pub fn new(row: &'a Row<'a, E>, memory: &'a mut Memory) -> Self {
        memory.masses.fill_masses(row.level, row.data, row.scale);
        let total = memory.masses.buckets.iter().sum();
        Self { row, memory, total, counted: false, collected: None }
    }

    /// The lowest logit with at least this weight (at most 1).
    fn logit_of_weight(&self, weight: f32) -> f32 {
        let max = order_of(self.row.scale.max());
        let scale = &self.row.scale;
        smallest(order_of(f32::MIN), max, |o| scale.weight(float_of(o)) >= weight, float_of)
    }

    /// The logits of the tokens of a range of buckets.
    fn range(&self, buckets: RangeInclusive<usize>) -> Between {
        let low = self.logit_of_weight(bucket_floor(*buckets.end()).max(weight_of_mass(1)));
        let end = match buckets.start().checked_sub(1) {
            Some(above) => self.logit_of_weight(bucket_floor(above)),
            None => f32::INFINITY,
        };
        Between { low, end }
    }

    /// Collects the tokens of a bucket by id; gives the number of tokens that rank before it.
    fn collect(&mut self, bucket: usize, range: Between) -> u64 {
        if let Some((collected, before)) = self.collected
            && collected == bucket
        {
            return before;
        }
        let Row { level, data, blocks, .. } = *self.row;
        let tokens = &mut self.memory.tokens;
        tokens.clear();
        let before = collect_between(level, data, blocks, range, tokens);
        self.collected = Some((bucket, before));
        before
    }

    /// The bucket where the sum of `buckets` first satisfies `reached`, and the sum before it; the last bucket that is
    /// not empty if none does.
    fn find(buckets: &[u64], reached: impl Fn(u64) -> bool) -> Option<(usize, u64)> {
        let mut before = 0;
        let mut last = None;
        for (b, &sum) in buckets.iter().enumerate().filter(|(_, sum)| **sum != 0) {
            last = Some((b, before));
            if reached(before + sum) {
                break;
            }
            before += sum;
        }
        last
    }

    /// Seeks among tokens whose logits are in `range` and whose mass is `masses`, if they are many and all equal: equal
    /// logits have equal masses, and rank by id. Before them lies the mass `mass_before`.
    fn among_equals(
        &self,
        range: Between,
        masses: u64,
        mass_before: u64,
        target: Target,
    ) -> Option<Equal> {
        let Row { level, data, blocks, scale, .. } = *self.row;
        if masses / scale.mass(range.low).max(1) < MANY {
            return None;
        }
        let survey = survey(level, data, range);
        let (lowest, highest) = survey.extent;
        if lowest != highest {
            return None;
        }
        let mass = scale.mass(lowest);
        let index = match target {
            Target::Mass(m) => m.saturating_sub(mass_before) / mass,
            Target::Count(c) => c - survey.above - 1,
        };
        let before = index.min(masses / mass - 1);
        let id = nth_equal(level, data, blocks, lowest, before)? as u32;
        Some(Equal { above: survey.above, before, mass, token: Candidate::new(id, lowest) })
    }

    /// Seeks inside a bucket, before which lies the mass `mass_before`.
    fn refine(&mut self, bucket: usize, mass_before: u64, target: Target) -> Option<Prefix> {
        let masses = self.memory.masses.buckets[bucket];
        let range = self.range(bucket..=bucket);
        if let Some(e) = self.among_equals(range, masses, mass_before, target) {
            let (count, mass) = (e.above + e.before + 1, mass_before + (e.before + 1) * e.mass);
            return Some(Prefix { count, mass, bound: e.token });
        }
        let count_before = self.collect(bucket, range);
        let target = match target {
            Target::Mass(m) => Target::Mass(m - mass_before),
            Target::Count(c) => Target::Count(c - count_before),
        };
        let row = self.row;
        let Memory { tokens, logits, weights, work, buffers, .. } = &mut *self.memory;
        logits.clear();
        logits.extend(tokens.iter().map(|t| t.logit()));
        weights.resize(logits.len(), 0.0);
        weights_into(row.level, logits, row.scale, weights);
        work.0.clone_from(tokens);
        work.1.clear();
        work.1.extend(weights.iter().map(|&w| mass(w)));
        let found = select(&mut work.0, &mut work.1, target, buffers)?;
        Some(Prefix {
            count: count_before + found.count,
            mass: mass_before + found.mass,
            bound: found.entry,
        })
    }

    /// All tokens with at least a logit, and mass.
    fn at_least(&mut self, logit: f32) -> Prefix {
        let logit = logit.max(self.logit_of_weight(weight_of_mass(1)));
        let bucket = bucket_of(self.row.scale.weight(logit)).min(BUCKETS - 1);
        let mut prefix = Prefix {
            count: self.collect(bucket, self.range(bucket..=bucket)),
            mass: self.memory.masses.buckets[..bucket].iter().sum(),
            bound: Candidate::new(u32::MAX, logit),
        };
        for t in self.memory.tokens.iter().filter(|t| **t <= prefix.bound) {
            prefix.count += 1;
            prefix.mass += self.row.scale.mass(t.logit());
        }
        prefix
    }
}

impl<E: Element> Ranked for Full<'_, E> {
    fn seek(&mut self, seek: Seek) -> Result<Prefix, Need> {
        let found = match seek {
            Seek::Weight(w) => Some(self.at_least(self.logit_of_weight(w))),
            Seek::Logit(logit) => Some(self.at_least(logit)),
            Seek::Mass(m) => Self::find(&self.memory.masses.buckets, |sum| sum > m)
                .and_then(|(bucket, before)| self.refine(bucket, before, Target::Mass(m))),
            Seek::Count(c) => {
                if !self.counted {
                    self.memory.counts.fill_counts(self.row.level, self.row.data, self.row.scale);
                    self.counted = true;
                }
                Self::find(&self.memory.counts.buckets, |sum| sum >= c).and_then(|(bucket, _)| {
                    let before = self.memory.masses.buckets[..bucket].iter().sum();
                    self.refine(bucket, before, Target::Count(c))
                })
            }
        };
        found.ok_or(Need::Depth)
    }

    fn total(&self) -> Bracket {
        Bracket::exact(self.total)
    }

    fn tokens(
        &mut self,
        prefix: Option<&Prefix>,
        out: &mut Vec<Candidate>,
    ) -> Result<Option<f32>, Need> {
        let with_mass = self.logit_of_weight(weight_of_mass(1));
        let low = prefix.map_or(with_mass, |p| p.bound.logit().max(with_mass));
        let Row { level, data, blocks, .. } = *self.row;
        out.clear();
        collect_between(level, data, blocks, Between::from(low), out);
        if let Some(prefix) = prefix {
            out.retain(|t| *t <= prefix.bound);
        }
        Ok(None)
    }

    fn ring(&mut self, mean: f64, target: u64, out: &mut Vec<Candidate>) -> Result<Inside, Need> {
        if self.memory.floors.is_empty() {
            let floors = (0..BUCKETS).map(|b| libm::log(f64::from(bucket_floor(b))));
            self.memory.floors.extend(floors);
        }
        let masses = &self.memory.masses.buckets;
        let (outer, inner) = Rings { masses, floors: &self.memory.floors, mean }.around(target);
        let mass = masses[outer.clone()].iter().sum();
        let outer = self.range(outer);
        let Row { level, data, blocks, .. } = *self.row;
        out.clear();
        if inner.is_none()
            && let Some(e) = self.among_equals(outer, mass, 0, Target::Mass(target))
        {
            // Equal logits deviate equally and go by id here, too.
            out.push(e.token);
            return Ok(Inside { count: e.before, mass: e.before * e.mass });
        }
        let Some(inner) = inner else {
            collect_between(level, data, blocks, outer, out);
            return Ok(Inside { count: 0, mass: 0 });
        };
        let mass = masses[inner.clone()].iter().sum();
        let inner = self.range(inner);
        // Either side may be empty; the number of tokens above it is still that.
        let above = Between { low: inner.end, end: outer.end };
        let before_above = collect_between(level, data, blocks, above, out);
        let before = before_above + out.len() as u64;
        let below = Between { low: outer.low, end: inner.low };
        let count = collect_between(level, data, blocks, below, out) - before;
        out.sort_unstable_by_key(|t| t.id());
        Ok(Inside { count, mass })
    }
}
