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
        let sum: u64 = self.masses.iter().sum();
        let target = (u128::from(target) * u128::from(sum) / u128::from(total.max(1))) as u64;
        let last = self.masses.len() - 1;
        let middle = self.middle(last);
        // The steps from `first` to `end` are taken already; next comes the nearer one of their neighbours.
        let (mut first, mut end) = (middle, middle);
        let mut mass = self.masses[middle];
        while mass <= target && (first, end) != (0, last) {
            let up = if first > 0 { self.deviation(first - 1) } else { f64::INFINITY };
            let down = if end < last { self.deviation(end + 1) } else { f64::INFINITY };
            // Both may be infinite: a step at the end of the floats.
            if first > 0 && (end == last || up <= down) {
                first -= 1;
                mass += self.masses[first];
            } else {
                end += 1;
                mass += self.masses[end];
            }
        }
        let outer = first.saturating_sub(width)..=end.saturating_add(width).min(last);
        let inner = (first.saturating_add(width) < end.saturating_sub(width))
            .then(|| first + width + 1..=end - width - 1)
            .filter(|inner| !inner.is_empty());
        (outer, inner)
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

    #[test]
    fn the_widest_ring_is_everything() {
        let argument = |step| -(step as f64);
        let rings = Rings { masses: &[1, 2, 3], argument: &argument, mean: -1.5 };
        assert_eq!(rings.around(3, 6, ALL), (0..=2, None));
    }
}
