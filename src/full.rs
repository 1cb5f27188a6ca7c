//! The whole rank of a row, for decisions that go deep: a histogram of masses over buckets of weights, refined where
//! something is sought. Nothing is sorted, and integer masses make it the sorted walk's answer.

use crate::element::Element;
use crate::kernels::{
    BUCKETS, Between, Bucket, Candidate, bucket_floor, bucket_of, collect_between, histogram, mass,
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
    buckets: Vec<Bucket>,
    tokens: Vec<Candidate>,
    logits: Vec<f32>,
    weights: Vec<f32>,
    masses: Vec<u64>,
    buffers: Buffers,
}

/// All tokens of a row that have mass.
pub(crate) struct Full<'a, E> {
    row: &'a Row<'a, E>,
    memory: &'a mut Memory,
    total: u64,
}

impl<'a, E: Element> Full<'a, E> {
    /// One pass over the row.
    pub fn new(row: &'a Row<'a, E>, memory: &'a mut Memory) -> Self {
        histogram(row.level, row.data, row.scale, &mut memory.buckets);
        let total = memory.buckets.iter().map(|b| b.mass).sum();
        Self { row, memory, total }
    }

    /// The lowest logit with at least this weight (at most 1).
    fn logit_of_weight(&self, weight: f32) -> f32 {
        let max = order_of(self.row.scale.max());
        let scale = &self.row.scale;
        smallest(order_of(f32::MIN), max, |o| scale.weight(float_of(o)) >= weight, float_of)
    }

    /// Collects the tokens of a bucket.
    fn collect(&mut self, bucket: usize) {
        let low = self.logit_of_weight(bucket_floor(bucket).max(weight_of_mass(1)));
        let high = match bucket.checked_sub(1) {
            Some(above) => float_of(order_of(self.logit_of_weight(bucket_floor(above))) - 1),
            None => f32::MAX,
        };
        let Row { level, data, blocks, .. } = *self.row;
        self.memory.tokens.clear();
        collect_between(level, data, blocks, Between { low, high }, &mut self.memory.tokens);
    }

    /// Seeks inside a bucket, before which lie the tokens and the mass of `before`.
    fn refine(&mut self, bucket: usize, before: Bucket, target: Target) -> Option<Prefix> {
        self.collect(bucket);
        let row = self.row;
        let Memory { tokens, logits, weights, masses, buffers, .. } = &mut *self.memory;
        let first = tokens.first()?;
        let place = |mass: u64, count: u64, bound: Candidate| Prefix {
            count: before.count + count,
            mass: before.mass + mass,
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
        masses.clear();
        masses.extend(weights.iter().map(|&w| mass(w)));
        select(tokens, masses, target, buffers).map(|f| place(f.mass, f.count, f.entry))
    }
}

impl<E: Element> Ranked for Full<'_, E> {
    fn seek(&mut self, seek: Seek) -> Result<Prefix, Need> {
        let bucket_of_weight = match seek {
            Seek::Weight(w) => bucket_of(w).min(BUCKETS - 1),
            _ => BUCKETS,
        };
        let mut before = Bucket::default();
        let mut last = None;
        for (b, bucket) in self.memory.buckets[..BUCKETS].iter().enumerate() {
            let reached = match seek {
                Seek::Mass(m) => before.mass + bucket.mass > m,
                Seek::Count(c) => before.count + bucket.count >= c,
                Seek::Weight(_) => b == bucket_of_weight,
            };
            if bucket.count != 0 {
                last = Some((b, before));
            }
            if reached {
                break;
            }
            before.mass += bucket.mass;
            before.count += bucket.count;
        }
        let (bucket, before) = last.ok_or(Need::Depth)?;
        let found = match seek {
            Seek::Mass(m) => self.refine(bucket, before, Target::Mass(m - before.mass)),
            Seek::Count(c) => self.refine(bucket, before, Target::Count(c - before.count)),
            Seek::Weight(w) => {
                let w = w.max(weight_of_mass(1));
                self.collect(bucket);
                let scale = &self.row.scale;
                let mut prefix = Prefix {
                    count: before.count,
                    mass: before.mass,
                    bound: Candidate::new(u32::MAX, self.logit_of_weight(w)),
                };
                for t in &self.memory.tokens {
                    let weight = scale.weight(t.logit());
                    if weight >= w {
                        prefix.count += 1;
                        prefix.mass += mass(weight);
                    }
                }
                Some(prefix)
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
        collect_between(level, data, blocks, Between { low, high: f32::MAX }, out);
        if let Some(prefix) = prefix {
            out.retain(|t| *t <= prefix.bound);
        }
        Ok(())
    }
}
