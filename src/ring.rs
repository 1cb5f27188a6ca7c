//! Where a row's tokens, taken by their distance from a mean exponent argument, seem to reach a mass: as far as a sketch of
//! the row can tell.

use core::ops::RangeInclusive;

/// The width of a ring that is the whole row.
pub(crate) const ALL: usize = usize::MAX;

/// A sketch's steps around a mean.
pub(crate) struct Rings<'a> {
    /// About the mass of each step.
    pub masses: &'a [u64],
    /// About the exponent argument of each step; they descend.
    pub argument: &'a dyn Fn(usize) -> f64,
    /// The mean.
    pub mean: f64,
}

/// A part of one total as one of another.
pub(crate) fn scaled(mass: u64, from: u64, to: u64) -> u64 {
    (u128::from(mass) * u128::from(to) / u128::from(from.max(1))) as u64
}

/// Where a mass seems to be exceeded.
struct Crossing {
    /// The steps taken until then.
    steps: RangeInclusive<usize>,
    /// The last one taken, and the mass of the others.
    last: usize,
    before: u64,
    /// The mass, if the total is that of the sketch.
    target: u64,
}

impl Rings<'_> {
    /// The steps that seem to hold the token where the cumulative mass first exceeds `target`, if `total` is that of all, and
    /// what lies nearer to the mean: a range, and a range inside of it that seems to be nearer than that token. The larger
    /// `width`, the more steps lie between the two.
    pub fn around(
        &self,
        target: u64,
        total: u64,
        width: usize,
    ) -> (RangeInclusive<usize>, Option<RangeInclusive<usize>>) {
        let last = self.masses.len() - 1;
        let (first, end) = self.crossing(target, total).steps.into_inner();
        let outer = first.saturating_sub(width)..=end.saturating_add(width).min(last);
        let apart = width.saturating_add(1);
        let (upper, lower) = (first.saturating_add(apart), end.checked_sub(apart));
        let inner = lower.filter(|&lower| upper <= lower).map(|lower| {
            // Where the row ends on the upper side, all there may be nearer. The last step on the lower one has no end.
            let nearer = first == 0 && self.deviation(0) < self.deviation(lower);
            if nearer { 0..=lower } else { upper..=lower }
        });
        (outer, inner)
    }

    /// About the mass of the tokens up to where the cumulative mass exceeds `target`, if `total` is that of all: more than it
    /// by a part of the last token's. `counts` are the numbers of tokens on the steps.
    pub fn kept(&self, counts: &[u32], target: u64, total: u64) -> u64 {
        let Crossing { last, before, target, .. } = self.crossing(target, total);
        let each = self.masses[last] / u64::from(counts[last].max(1));
        let tokens = target.saturating_sub(before) / each.max(1) + 1;
        scaled(before + (tokens * each).min(self.masses[last]), self.sum(), total)
    }

    fn sum(&self) -> u64 {
        self.masses.iter().sum()
    }

    fn crossing(&self, target: u64, total: u64) -> Crossing {
        let target = scaled(target, total, self.sum());
        let last = self.masses.len() - 1;
        let middle = self.middle(last);
        // The steps from `first` to `end` are taken already; next comes the nearer one of their neighbours.
        let (mut first, mut end) = (middle, middle);
        let (mut newest, mut before) = (middle, 0);
        while before + self.masses[newest] <= target && (first, end) != (0, last) {
            before += self.masses[newest];
            let up = if first > 0 { self.deviation(first - 1) } else { f64::INFINITY };
            let down = if end < last { self.deviation(end + 1) } else { f64::INFINITY };
            // Both may be infinite: a step at the end of the floats.
            if first > 0 && (end == last || up <= down) {
                first -= 1;
                newest = first;
            } else {
                end += 1;
                newest = end;
            }
        }
        Crossing { steps: first..=end, last: newest, before, target }
    }

    /// The step that is nearest to the mean, about.
    fn middle(&self, last: usize) -> usize {
        let (mut low, mut high) = (0, last);
        while low < high {
            let middle = low + (high - low) / 2;
            if (self.argument)(middle) > self.mean { low = middle + 1 } else { high = middle }
        }
        match low.checked_sub(1) {
            Some(above) if self.deviation(above) <= self.deviation(low) => above,
            _ => low,
        }
    }

    fn deviation(&self, step: usize) -> f64 {
        ((self.argument)(step) - self.mean).abs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crossing_is_in_the_ring() {
        // Steps of width 1 with one token of mass 1 each, in their middles.
        let masses = [1u64; 20];
        for mean in [-0.2, -3.3, -7.5, -18.9] {
            let mut order: Vec<usize> = (0..20).collect();
            order.sort_by(|a, b| {
                let distance = |b: usize| (-(b as f64) - mean).abs();
                distance(*a).total_cmp(&distance(*b))
            });
            for target in 0..20u64 {
                let rings = Rings { masses: &masses, argument: &|step| -(step as f64), mean };
                let (outer, inner) = rings.around(target * 5, 100, 1);
                let crossing = order[target as usize];
                assert!(outer.contains(&crossing), "{mean} {target}");
                let nearer = &order[..target as usize];
                assert!(nearer.iter().all(|b| outer.contains(b)), "{mean} {target}");
                if let Some(mut inner) = inner {
                    assert!(inner.all(|b| nearer.contains(&b)), "{mean} {target}");
                }
            }
        }
    }

    /// Whole tokens are kept: one of 10 at the top, then nine of 10 each.
    #[test]
    fn what_is_kept_ends_with_a_token() {
        let rings = Rings { masses: &[10, 90], argument: &|step| -(step as f64), mean: 0.0 };
        for (target, kept) in [(0, 10), (4, 10), (9, 10), (10, 20), (25, 30), (29, 30), (99, 100)] {
            assert_eq!(rings.kept(&[1, 9], target, 100), kept, "{target}");
            assert_eq!(rings.kept(&[1, 9], target * 7, 700), kept * 7, "{target}");
        }
        assert_eq!(Rings { masses: &[0, 0], ..rings }.kept(&[0, 0], 5, 100), 0);
    }

    /// The row ends above, where its best tokens are nearer to the mean than the place sought.
    #[test]
    fn an_inner_range_reaches_the_top_where_all_there_is_nearer() {
        let rings = Rings { masses: &[1; 20], argument: &|step| -(step as f64), mean: -3.2 };
        assert_eq!(rings.around(15, 20, 1), (0..=16, Some(0..=13)));
        // Here the upper side holds it.
        assert_eq!(rings.around(6, 20, 1), (0..=7, Some(2..=4)));
    }

    #[test]
    fn the_widest_ring_is_everything() {
        let argument = |step| -(step as f64);
        let rings = Rings { masses: &[1, 2, 3], argument: &argument, mean: -1.5 };
        assert_eq!(rings.around(3, 6, ALL), (0..=2, None));
    }
}
