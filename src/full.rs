//! The whole rank of a row, for decisions that go deep: a histogram of masses over buckets of weights, refined where
//! something is sought. Nothing is sorted, and integer masses make it the sorted walk's answer.

use crate::element::Element;
use crate::kernels::{
    BUCKETS, Between, Candidate, Histogram, bucket_floor, bucket_of, collect_between, mass,
    weights_into,
};
use crate::rank::{Bracket, Need, Prefix, Ranked, Seek, smallest, weight_of_mass};
use crate::row::{Row, float_of, order_of};
use crate::select::{Buffers, Keyed, Target, select};

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
    buffers: Buffers,
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

    /// Collects the tokens of a bucket by id; gives the number of tokens that rank before it.
    fn collect(&mut self, bucket: usize) -> u64 {
        if let Some((collected, before)) = self.collected
            && collected == bucket
        {
            return before;
        }
        let low = self.logit_of_weight(bucket_floor(bucket).max(weight_of_mass(1)));
        let end = match bucket.checked_sub(1) {
            Some(above) => self.logit_of_weight(bucket_floor(above)),
            None => f32::INFINITY,
        };
        let Row { level, data, blocks, .. } = *self.row;
        let tokens = &mut self.memory.tokens;
        tokens.clear();
        let before = collect_between(level, data, blocks, Between { low, end }, tokens);
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

    /// Seeks inside a bucket, before which lies the mass `mass`.
    fn refine(&mut self, bucket: usize, mass_before: u64, target: Target) -> Option<Prefix> {
        let count_before = self.collect(bucket);
        let target = match target {
            Target::Mass(m) => Target::Mass(m - mass_before),
            Target::Count(c) => Target::Count(c - count_before),
        };
        let row = self.row;
        let Memory { tokens, logits, weights, work, buffers, .. } = &mut *self.memory;
        let first = tokens.first()?;
        let place = |mass: u64, count: u64, bound: Candidate| Prefix {
            count: count_before + count,
            mass: mass_before + mass,
            bound,
        };
        if tokens.iter().all(|t| t.rank_key() == first.rank_key()) {
            // Equal logits have equal masses, and rank by id, which is the order they stand in.
            let mass = row.scale.mass(first.logit());
            let index = match target {
                Target::Mass(m) => m / mass,
                Target::Count(c) => c - 1,
            };
            let index = index.min(tokens.len() as u64 - 1);
            return Some(place((index + 1) * mass, index + 1, tokens[index as usize]));
        }
        logits.clear();
        logits.extend(tokens.iter().map(|t| t.logit()));
        weights.resize(logits.len(), 0.0);
        weights_into(row.level, logits, row.scale, weights);
        work.0.clone_from(tokens);
        work.1.clear();
        work.1.extend(weights.iter().map(|&w| mass(w)));
        select(&mut work.0, &mut work.1, target, buffers).map(|f| place(f.mass, f.count, f.entry))
    }

    /// All tokens with at least a weight.
    fn at_least(&mut self, weight: f32) -> Prefix {
        let weight = weight.max(weight_of_mass(1));
        let bucket = bucket_of(weight).min(BUCKETS - 1);
        let mut prefix = Prefix {
            count: self.collect(bucket),
            mass: self.memory.masses.buckets[..bucket].iter().sum(),
            bound: Candidate::new(u32::MAX, self.logit_of_weight(weight)),
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
            Seek::Weight(w) => Some(self.at_least(w)),
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

    fn tokens(&mut self, prefix: Option<&Prefix>, out: &mut Vec<Candidate>) -> Result<(), Need> {
        let low = self.logit_of_weight(weight_of_mass(1));
        let Row { level, data, blocks, .. } = *self.row;
        out.clear();
        collect_between(level, data, blocks, Between::from(low), out);
        if let Some(prefix) = prefix {
            out.retain(|t| *t <= prefix.bound);
        }
        Ok(())
    }
}
