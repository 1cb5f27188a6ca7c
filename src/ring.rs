//! Where a row's tokens, taken by their distance from a mean exponent argument, reach a mass: as far as a histogram over
//! buckets of weights can tell.

use core::ops::RangeInclusive;

/// How far a token's exponent argument can lie outside of what its weight says: a weight is within 1 ULP of `e^x`.
const MARGIN: f64 = 1e-6;

/// Buckets of weights around a mean.
pub(crate) struct Rings<'a> {
    /// The mass of each bucket.
    pub masses: &'a [u64],
    /// The log of each bucket's smallest weight, descending.
    pub floors: &'a [f64],
    /// The mean.
    pub mean: f64,
}

impl Rings<'_> {
    /// The buckets that can hold the token where the cumulative mass first exceeds `target`, and all that lie nearer to the
    /// mean: a range, and a range inside of it that is surely nearer than that token.
    pub fn around(&self, target: u64) -> (RangeInclusive<usize>, Option<RangeInclusive<usize>>) {
        let last = self.floors.len() - 1;
        let middle = self.floors.partition_point(|&x| x > self.mean).min(last);
        // All tokens within `far` weigh more than the target together, all that are nearer than `near` do not.
        let far = self.walk(middle, target, |b| self.farthest(b));
        let near = self.walk(middle, target, |b| self.nearest(b));
        let spread = |inside: &dyn Fn(usize) -> bool| {
            let (mut first, mut end) = (middle, middle);
            while first > 0 && inside(first - 1) {
                first -= 1;
            }
            while end < last && inside(end + 1) {
                end += 1;
            }
            first..=end
        };
        let outer = spread(&|b| self.nearest(b) <= far);
        let surely = |b: usize| self.farthest(b) < near;
        (outer, surely(middle).then(|| spread(&surely)))
    }

    /// Adds up masses from the middle outwards, the nearer side first; the largest distance met when the sum exceeds the
    /// target.
    fn walk(&self, middle: usize, target: u64, distance: impl Fn(usize) -> f64) -> f64 {
        let (mut sum, mut reached) = (self.masses[middle], distance(middle));
        let mut above = middle.checked_sub(1);
        let mut below = middle + 1;
        while sum <= target {
            let up = above.map_or(f64::INFINITY, &distance);
            let down = if below < self.floors.len() { distance(below) } else { f64::INFINITY };
            let nearer = match above {
                Some(b) if up <= down => {
                    above = b.checked_sub(1);
                    b
                }
                _ if below < self.floors.len() => {
                    below += 1;
                    below - 1
                }
                _ => return f64::INFINITY,
            };
            sum += self.masses[nearer];
            reached = reached.max(up.min(down));
        }
        reached
    }

    fn top(&self, bucket: usize) -> f64 {
        bucket.checked_sub(1).map_or(0.0, |above| self.floors[above]) + MARGIN
    }

    fn bottom(&self, bucket: usize) -> f64 {
        self.floors[bucket] - MARGIN
    }

    /// No token of the bucket is nearer to the mean.
    fn nearest(&self, bucket: usize) -> f64 {
        (self.bottom(bucket) - self.mean).max(self.mean - self.top(bucket)).max(0.0)
    }

    /// No token of the bucket is farther from the mean.
    fn farthest(&self, bucket: usize) -> f64 {
        (self.top(bucket) - self.mean).max(self.mean - self.bottom(bucket))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crossing_is_in_the_ring() {
        // Buckets of width 1 with one token of mass 1 each, in their middles.
        let floors: Vec<f64> = (1..=20).map(|b| -f64::from(b)).collect();
        let masses = [1u64; 20];
        for mean in [-0.2, -3.3, -7.5, -19.9] {
            let mut order: Vec<usize> = (0..20).collect();
            order.sort_by(|a, b| {
                let distance = |b: usize| (-0.5 - b as f64 - mean).abs();
                distance(*a).total_cmp(&distance(*b))
            });
            for target in 0..20u64 {
                let (outer, inner) =
                    Rings { masses: &masses, floors: &floors, mean }.around(target);
                let crossing = order[target as usize];
                assert!(outer.contains(&crossing), "{mean} {target}");
                let nearer = &order[..target as usize];
                assert!(nearer.iter().all(|b| outer.contains(b)), "{mean} {target}");
                if let Some(inner) = inner {
                    assert!(
                        inner.clone().all(|b| nearer.contains(&b)),
                        "{mean} {target} {inner:?}"
                    );
                    assert!(outer.end() - outer.start() - (inner.end() - inner.start()) <= 6);
                }
            }
        }
    }

    #[test]
    fn a_target_beyond_everything_takes_all() {
        let rings = Rings { masses: &[1, 2, 3], floors: &[-1.0, -2.0, -3.0], mean: -1.5 };
        assert_eq!(rings.around(6).0, 0..=2);
    }
}
