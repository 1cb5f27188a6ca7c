//! The first tokens of a row's rank, sorted: all that most decisions ever look at.

use crate::element::Element;
use crate::kernels::{BLOCK, Between, Candidate, ONE, collect_some, mass, threshold, total_mass};
use crate::rank::{Bracket, Inside, Need, Prefix, Ranked, Seek};
use crate::row::Row;
use crate::weighing::Weighing;

/// Reused memory of [`Head`].
#[derive(Debug, Default)]
pub(crate) struct Memory {
    tokens: Vec<Candidate>,
    equal: Vec<Candidate>,
    weighing: Weighing,
    /// Cumulative masses.
    sums: Vec<u64>,
}

impl Memory {
    /// The `n` best unmasked tokens of a row, by rank, whether they have mass or not.
    pub fn best<E: Element>(&mut self, row: &Row<'_, E>, n: usize) -> &[Candidate] {
        self.tokens.clear();
        if n > 0 {
            row.first_from(logit_of_rank(row, n), n, &mut self.tokens, &mut self.equal);
        }
        keep_best(&mut self.tokens, n);
        self.tokens.sort_unstable();
        &self.tokens
    }
}

/// Drops all but the `n` best tokens.
fn keep_best(tokens: &mut Vec<Candidate>, n: usize) {
    if n < tokens.len() {
        tokens.select_nth_unstable(n);
        tokens.truncate(n);
    }
}

/// Longer heads take more time to sort than a decision from the whole row.
const MANY: usize = 2048;

/// How far down the rank to look.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Reach {
    /// At least this many tokens, or all.
    Tokens(usize),
    /// This many tokens, or all: more are of no use, because the first filter drops them. Not 0.
    Best(usize),
    /// Every token with at least this logit.
    Logit(f32),
}

impl Reach {
    /// Tokens to look at first: most decisions on real rows end within them.
    pub const FEW: usize = 64;
    /// Tokens to look at next.
    pub const MORE: usize = 512;
    /// Rows up to this length are looked at whole, sorted.
    pub const SHORT: usize = 1024;
    /// Every unmasked token.
    pub const ALL: Self = Self::Logit(f32::MIN);

    /// All tokens from `logit` on, unless they may be too many to sort.
    pub fn from(blocks: &[f32], logit: f32) -> Option<Self> {
        let reaching = blocks.iter().filter(|&&top| top >= logit).count();
        (reaching <= Self::MORE.min(blocks.len() / 4 + Self::FEW)).then_some(Self::Logit(logit))
    }
}

/// The first tokens of the rank, and bounds on the rest.
pub(crate) struct Head<'a> {
    tokens: &'a [Candidate],
    weights: &'a [f32],
    sums: &'a [u64],
    /// All tokens with at least this logit are in the head.
    low: f32,
    /// No token outside weighs more than this.
    outside: f32,
    /// Whether no token outside has mass.
    complete: bool,
    /// Whether what is sought lies in here, or may as well end here.
    enough: bool,
    total: Option<Bracket>,
}

/// A logit that at least `want` tokens reach, as far as block maxima can tell.
fn logit_of_rank<E: Element>(row: &Row<'_, E>, want: usize) -> f32 {
    threshold(row.level, row.blocks, row.scale.max(), want)
}

impl<'a> Head<'a> {
    /// Collects the head of a row, of whose total mass `known` is known. `None` if so many tokens are in it that it should
    /// not be sorted.
    pub fn new<E: Element>(
        row: &Row<'_, E>,
        reach: Reach,
        known: Option<Bracket>,
        memory: &'a mut Memory,
    ) -> Option<Self> {
        let (mut low, want) = match reach {
            Reach::Tokens(want) | Reach::Best(want) => (logit_of_rank(row, want), want),
            Reach::Logit(logit) => (logit.max(f32::MIN), 0),
        };
        let Memory { tokens, weighing, sums, .. } = memory;
        let Row { level, data, blocks, scale, .. } = *row;
        let limit = MANY.max(2 * want);
        collect_some(level, data, blocks, Between::from(low), limit, tokens);
        if tokens.len() > limit {
            return None;
        }
        let dropped = matches!(reach, Reach::Best(_)) && want < tokens.len();
        if dropped {
            keep_best(tokens, want);
        }
        tokens.sort_unstable();
        // No logit outside is larger; among those dropped may be equals of the last that was kept.
        let mut most = low;
        if let Some(last) = tokens.last().filter(|_| dropped) {
            most = last.logit();
            low = most.next_up();
        }
        let weights = weighing.weigh(level, scale, tokens);
        let with_mass = weights.partition_point(|&w| mass(w) != 0);
        let (tokens, weights) = (&tokens[..with_mass], &weights[..with_mass]);
        let mut sum = 0;
        sums.clear();
        sums.extend(weights.iter().map(|&w| {
            sum += mass(w);
            sum
        }));

        let outside = scale.weight(most);
        let complete = low == f32::MIN || mass(outside) == 0;
        let total = if complete { Some(Bracket::exact(sum)) } else { known };
        let enough = matches!(reach, Reach::Best(_));
        Some(Self { tokens, weights, sums, low, outside, complete, enough, total })
    }

    /// A whole rank that is known already: its tokens with mass, their weights and their cumulative masses.
    pub fn whole(tokens: &'a [Candidate], weights: &'a [f32], sums: &'a [u64]) -> Self {
        let total = Some(Bracket::exact(sums.last().copied().unwrap_or(0)));
        let (low, complete, enough) = (f32::MIN, true, true);
        Self { tokens, weights, sums, low, outside: 0.0, complete, enough, total }
    }

    /// Narrows the bounds on the total mass.
    pub fn set_total(&mut self, total: Bracket) {
        if !self.complete {
            self.total = Some(total);
        }
    }

    /// The mass of the head alone.
    pub fn mass(&self) -> u64 {
        self.sums.last().copied().unwrap_or(0)
    }

    /// Whether nothing is known of the total mass yet.
    pub fn is_unbounded(&self) -> bool {
        self.total.is_none()
    }

    /// Bounds on the row's total mass. Every token outside is in some block and is at most the block's maximum and below
    /// `low`; each block that doesn't reach `low` holds its maximum once.
    pub fn bounds<E: Element>(&self, row: &Row<'_, E>, few: &mut Vec<f32>) -> Bracket {
        debug_assert!(!self.enough || self.complete, "nothing depends on the total");
        let (head, low) = (self.mass(), self.low);
        few.clear();
        few.extend(row.blocks.iter().map(|&top| if top < low { top } else { low }));
        let reaching = row.blocks.iter().filter(|&&top| top >= low).count() as u64;
        let tops = total_mass(row.level, few, row.scale);
        let most = row.data.len() as u64 * ONE;
        Bracket {
            low: head + (tops - reaching * row.scale.mass(low)),
            high: most.min(head.saturating_add(tops.saturating_mul(BLOCK as u64))),
        }
    }

    /// About the total mass, from a sample of the tokens outside. No decision may depend on it, only the way to one.
    pub fn estimate<E: Element>(&self, row: &Row<'_, E>, few: &mut Vec<f32>) -> u64 {
        const SAMPLE: usize = 256;
        let stride = row.data.len().div_ceil(SAMPLE);
        let logits = row.data.iter().step_by(stride).map(|v| v.to_f32());
        few.clear();
        few.extend(logits.map(|l| if l < self.low { l } else { f32::NEG_INFINITY }));
        self.mass().saturating_add(total_mass(row.level, few, row.scale) * stride as u64)
    }
}

impl Ranked for Head<'_> {
    fn seek(&mut self, seek: Seek) -> Result<Prefix, Need> {
        let n = self.tokens.len();
        // How many tokens the prefix has, if it ends in here, and whether it is certain that it does.
        let (count, certain) = match seek {
            Seek::Mass(mass) => {
                let before = self.sums.partition_point(|&sum| sum <= mass);
                (before + 1, before < n)
            }
            Seek::Count(count) => (usize::try_from(count).unwrap_or(usize::MAX), count <= n as u64),
            Seek::Weight(weight) => {
                (self.weights.partition_point(|&w| w >= weight), self.outside < weight)
            }
            Seek::Logit(logit) => {
                (self.tokens.partition_point(|t| t.logit() >= logit), self.low <= logit)
            }
        };
        if !certain && !self.complete && !self.enough {
            return Err(Need::Depth);
        }
        let count = count.min(n);
        let Some(last) = count.checked_sub(1) else {
            return Err(Need::Depth);
        };
        Ok(Prefix { count: count as u64, mass: self.sums[last], bound: self.tokens[last] })
    }

    fn total(&self) -> Result<Bracket, Need> {
        self.total.ok_or(Need::Total)
    }

    fn tokens(
        &mut self,
        prefix: Option<&Prefix>,
        out: &mut Vec<Candidate>,
    ) -> Result<Option<f32>, Need> {
        let count = prefix.map_or(self.tokens.len(), |p| p.count as usize);
        out.clear();
        out.extend_from_slice(&self.tokens[..count]);
        out.sort_unstable_by_key(|t| t.id());
        Ok(if prefix.is_none() && !self.complete { Some(self.low) } else { None })
    }

    fn ring(&mut self, _: f64, _: u64, _: usize, _: &mut Vec<Candidate>) -> Result<Inside, Need> {
        Err(Need::Depth)
    }

    fn ranked(&mut self, prefix: &Prefix, out: &mut Vec<Candidate>) -> Result<(), Need> {
        out.clear();
        out.extend_from_slice(&self.tokens[..prefix.count as usize]);
        Ok(())
    }
}
