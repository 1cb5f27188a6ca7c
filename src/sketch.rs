//! A first picture of a row that is not peaked: how many tokens lie on each step of a grid of logits, and so about what
//! they weigh. It says where to look; nothing is decided by it.

use crate::element::Element;
use crate::kernels::{
    Between, Candidate, Counters, Grid, Moments, ONE, STEPS, Scale, count, mass, survey, threshold,
    weights_into,
};
use crate::rank::{Bracket, Inside, Need, Prefix, Ranked, Seek, weight_of_mass};
use crate::ring::{Rings, scaled};
use crate::row::Row;
use core::ops::RangeInclusive;

/// Reused memory of [`Sketch`].
#[derive(Debug, Default)]
pub(crate) struct Memory {
    counters: Counters,
    /// The blocks that are all counted, then those that stand for others, too.
    blocks: [Vec<usize>; 2],
    counts: Vec<u32>,
    zoomed: Vec<u32>,
    middles: Vec<f32>,
    weights: Vec<f32>,
    masses: Vec<u64>,
}

/// About what a row holds, by steps from the best token down: those of a grid, one of which may have been replaced by those
/// of another, finer grid.
pub(crate) struct Sketch<'a> {
    grid: Grid,
    zoom: Option<Zoom>,
    scale: Scale,
    /// Whether all tokens have the same logit.
    all_equal: bool,
    /// Whether only a part of the row was counted.
    sampled: bool,
    /// The lowest logit with mass.
    lowest: f32,
    counts: &'a [u32],
    /// The logit in the middle of each step, about.
    middles: &'a [f32],
    /// About the mass of each step.
    masses: &'a [u64],
    total: u64,
    wanted: Wanted,
}

/// A finer grid in the place of a step.
#[derive(Clone, Copy, Debug)]
struct Zoom {
    step: usize,
    grid: Grid,
}

/// A step with fewer tokens than this is looked at together with [`FEW`] tokens on either side.
const SPARSE: u32 = 64;
const FEW: u64 = 16;

/// A step with at least a row's length by this of its tokens is worth a closer look.
const CROWDED: usize = 8;

/// Of the blocks of a long row one of so many is counted, and stands for the others.
const ONE_OF: usize = 4;
/// But those with the largest maxima, one of so many, are all counted, since a few tokens may have most of the mass.
const BEST_OF: usize = 16;

/// A range of logits to look at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot {
    pub range: Between,
    /// What seems to be reached in it, and the first of its steps.
    aim: Option<(Aim, usize)>,
}

/// What is sought: a share of the mass, or a number of tokens.
#[derive(Clone, Copy, Debug)]
enum Aim {
    Share(f64),
    Count(u64),
}

impl Spot {
    /// No logit.
    pub const NOWHERE: Self = Self::at(Between::NOTHING);

    /// All of a range.
    pub const fn at(range: Between) -> Self {
        Self { range, aim: None }
    }
}

/// Where a token by its distance from the mean seems to be: in the outer range, but not in the inner one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ring {
    pub outer: Between,
    pub inner: Option<Between>,
    /// Steps between what seems to be the place and either range's end.
    pub width: usize,
}

impl Ring {
    /// The two parts to look at: above the inner range, and below.
    pub fn spots(&self) -> [Spot; 2] {
        let Self { outer, inner, .. } = *self;
        match inner {
            None => [Spot::at(outer), Spot::NOWHERE],
            Some(inner) => [
                Spot::at(Between { low: inner.end, end: outer.end }),
                Spot::at(Between { low: outer.low, end: inner.low }),
            ],
        }
    }
}

/// Places or rings that a decision seeks: the edge of what a filter keeps, and the draw.
pub(crate) const SOUGHT: usize = 2;

/// What of the row a decision seems to depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// Places by the rank, `len` of them.
    pub spots: [Spot; SOUGHT],
    pub len: usize,
    /// Places by the distance from the mean.
    pub rings: [Option<Ring>; SOUGHT],
    /// Whether the row's moments were asked for.
    pub moments: bool,
}

impl Wanted {
    /// Nothing yet.
    pub const NONE: Self =
        Self { spots: [Spot::NOWHERE; SOUGHT], len: 0, rings: [None; SOUGHT], moments: false };

    fn push(&mut self, spot: Spot) {
        if let Some(place) = self.spots.get_mut(self.len) {
            *place = spot;
            self.len += 1;
        }
    }
}

impl<'a> Sketch<'a> {
    /// One pass over the row, or over a part of it: then what is sought is found with the help of [`narrow`](Self::narrow), but
    /// for rings this is a poor guide.
    pub fn new<E: Element>(row: &Row<'_, E>, whole: bool, memory: &'a mut Memory) -> Self {
        let Memory { counters, blocks, counts, zoomed, middles, weights, masses } = memory;
        let Row { level, data, scale, .. } = *row;
        let lowest = scale.logit_of(weight_of_mass(1));
        // The grid spans what a sample spans: nearly all tokens may lie close together.
        const SAMPLE: usize = 256;
        let sample = data.iter().step_by(data.len().div_ceil(SAMPLE)).map(|v| v.to_f32());
        let least = sample.filter(|l| *l > f32::NEG_INFINITY).fold(scale.max(), f32::min);
        let mixed = least < scale.max();
        let grid = Grid::new(scale.max(), if mixed { least.max(lowest) } else { lowest });
        let all_equal =
            !mixed && survey(level, data, Between::from(scale.max())).inside == data.len() as u64;
        pick(row, whole || all_equal, blocks);
        let sampled = !blocks[1].is_empty();
        counts.clear();
        counts.resize(STEPS, 0);
        if all_equal {
            counts[0] = data.len() as u32;
        } else {
            count_blocks(row, grid, blocks, counters, counts);
        }
        middles.clear();
        middles.extend((0..STEPS).map(|step| grid.middle(step)));

        let zoom = zoom(row, grid, counts);
        if let Some(Zoom { step, grid }) = zoom {
            zoomed.clear();
            zoomed.resize(STEPS, 0);
            count_blocks(row, grid, blocks, counters, zoomed);
            // The last step has all tokens that are not in the others.
            let others: u32 = zoomed[..STEPS - 1].iter().sum();
            zoomed[STEPS - 1] = counts[step].saturating_sub(others);
            counts.splice(step..=step, zoomed.iter().copied());
            middles.splice(step..=step, (0..STEPS).map(|step| grid.middle(step)));
        }

        weights.resize(middles.len(), 0.0);
        weights_into(level, middles, scale, weights);
        masses.clear();
        masses.extend(counts.iter().zip(&*weights).map(|(&n, &w)| u64::from(n) * mass(w)));
        // The best token has the mass 1, whether it was counted or not.
        let total = masses.iter().sum::<u64>().max(ONE);
        let wanted = Wanted::NONE;
        Self {
            grid,
            zoom,
            scale,
            all_equal,
            sampled,
            lowest,
            counts,
            middles,
            masses,
            total,
            wanted,
        }
    }

    /// What was sought so far.
    pub fn wanted(&self) -> Wanted {
        self.wanted
    }

    /// Whether only a part of the row was counted.
    pub fn is_sampled(&self) -> bool {
        self.sampled
    }

    /// Whether all tokens have the same logit, none of them masked.
    pub fn all_equal(&self) -> bool {
        self.all_equal
    }

    /// The lowest logit with mass.
    pub fn lowest(&self) -> f32 {
        self.lowest
    }

    /// About the exponent argument of each step.
    fn argument(&self, step: usize) -> f64 {
        let below = f64::from(self.middles[step]) - f64::from(self.scale.max());
        below / f64::from(self.scale.temperature())
    }

    /// The step of a logit.
    fn step(&self, logit: f32) -> usize {
        let step = self.grid.step(logit.min(self.scale.max()));
        match self.zoom {
            Some(zoom) if step == zoom.step => step + zoom.grid.step(logit.min(zoom.grid.top())),
            Some(zoom) if step > zoom.step => step + STEPS - 1,
            _ => step,
        }
    }

    /// The lowest logit of a step and all steps above it.
    fn end(&self, step: usize) -> f32 {
        match self.zoom {
            Some(zoom) if step >= zoom.step => match step - zoom.step {
                inner if inner < STEPS - 1 => zoom.grid.end(inner).max(self.grid.end(zoom.step)),
                beyond => self.grid.end(zoom.step + beyond - (STEPS - 1)),
            },
            _ => self.grid.end(step),
        }
    }

    /// About how many tokens are in a range of logits, if all that were counted there are on one step. The last step doesn't
    /// count beside another: it has what is masked, too, which is in no range.
    pub fn crowd(&self, range: Between) -> Option<u64> {
        let highest = range.end.next_down().min(self.scale.max());
        let (first, last) = (self.step(highest), self.step(range.low));
        let counts = &self.counts[first.min(last)..=last];
        let (lowest, others) = counts.split_last()?;
        let lowest_ends = last < self.counts.len() - 1;
        let mut steps = others.iter().chain(lowest_ends.then_some(lowest)).filter(|n| **n > 0);
        let crowd = steps.next().unwrap_or(lowest);
        steps.next().is_none().then_some(u64::from(*crowd))
    }

    /// The logits of a range of steps, as far as they have mass: what is counted is counted down to there.
    pub fn range(&self, steps: RangeInclusive<usize>) -> Between {
        let end = match steps.start().checked_sub(1) {
            Some(above) => self.end(above).max(self.lowest),
            None => f32::INFINITY,
        };
        Between { low: self.end(*steps.end()).max(self.lowest).min(end), end }
    }

    /// The logits around the place where a mass out of a total, or a count, seems to be reached, with at least `more` tokens
    /// on either side, if there are so many. Where tokens are few, a step's mass is little more than a guess, so that some
    /// are always taken.
    pub fn around(&self, place: Place, more: u64) -> Spot {
        let step = self.find(place).step;
        let more = if self.counts[step] < SPARSE { more.max(FEW) } else { more };
        let (mut first, mut end) = (step, step);
        let (mut above, mut below) = (0, 0);
        while first > 0 && above < more {
            first -= 1;
            above += u64::from(self.counts[first]);
        }
        while end + 1 < self.counts.len() && below < more {
            end += 1;
            below += u64::from(self.counts[end]);
        }
        Spot::at(self.range(first..=end))
    }

    /// Where something seems to be reached, at first.
    fn spot(&self, place: Place) -> Spot {
        if !self.sampled {
            return self.around(place, 0);
        }
        let step = self.find(place).step;
        let aim = match place {
            Place::Mass(mass, total) => Aim::Share(mass as f64 / total.max(1) as f64),
            Place::Count(count) => Aim::Count(count),
        };
        Spot { range: self.range(step..=step), aim: Some((aim, step)) }
    }

    /// The range of logits in which a spot's aim seems to be reached, now that the mass of all tokens is known, and number and
    /// mass of those above the spot. It ends where the spot does, or begins there.
    pub fn narrow(&self, spot: Spot, total: u64, (count, mass): (u64, u64)) -> Between {
        let Some((aim, step)) = spot.aim else { return spot.range };
        let missing = match aim {
            Aim::Share(share) => share * total as f64 - mass as f64,
            Aim::Count(sought) => sought as f64 - count as f64,
        };
        // Steps are taken until they hold what is missing and, since tokens were sampled, three standard deviations more.
        let (mut mass, mut tokens) = (0.0, 0.0);
        let mut is_enough = |step: usize| {
            tokens += f64::from(self.counts[step]);
            mass += self.masses[step] as f64;
            let found = if let Aim::Share(_) = aim { mass } else { tokens };
            found >= missing.abs() * (1.0 + 3.0 * (ONE_OF as f64 / tokens).sqrt())
        };
        if missing < 0.0 && step > 0 {
            let first = (0..step).rev().find(|&step| is_enough(step)).unwrap_or(0);
            self.range(first..=step - 1)
        } else {
            let last = self.masses.len() - 1;
            let end = (step..=last).find(|&step| is_enough(step)).unwrap_or(last);
            self.range(step..=end)
        }
    }

    /// Where the token seems to be at which the mass of those nearer to a mean first exceeds `target`, if `total` is that
    /// of all.
    pub fn ring_around(&self, mean: f64, target: u64, total: u64, width: usize) -> Ring {
        self.with_rings(mean, |rings| {
            let (outer, inner) = rings.around(target, total, width);
            Ring { outer: self.range(outer), inner: inner.map(|inner| self.range(inner)), width }
        })
    }

    fn with_rings<T>(&self, mean: f64, look: impl FnOnce(Rings<'_>) -> T) -> T {
        let argument = |step| self.argument(step);
        look(Rings { masses: self.masses, argument: &argument, mean })
    }

    /// The lowest logit that a seek of a logit or a weight takes, and that has mass.
    pub fn logit(&self, seek: Seek) -> f32 {
        let logit = match seek {
            Seek::Logit(logit) => logit,
            Seek::Weight(weight) => self.scale.logit_of(weight),
            Seek::Mass(_) | Seek::Count(_) => self.lowest,
        };
        logit.max(self.lowest)
    }

    fn find(&self, place: Place) -> At {
        let mut at = At { step: 0, count: 0, mass: 0 };
        let sought = match place {
            Place::Mass(mass, total) => scaled(mass, total, self.total),
            Place::Count(count) => count.saturating_sub(1),
        };
        for (step, (&count, &mass)) in self.counts.iter().zip(self.masses).enumerate() {
            at.step = step;
            let reached = match place {
                Place::Mass(..) => at.mass + mass,
                Place::Count(_) => at.count + u64::from(count),
            };
            if reached > sought {
                break;
            }
            at.count += u64::from(count);
            at.mass += mass;
        }
        at
    }
}

/// Which blocks to count.
fn pick<E: Element>(row: &Row<'_, E>, whole: bool, [all, some]: &mut [Vec<usize>; 2]) {
    all.clear();
    some.clear();
    let n = row.blocks.len();
    if whole || n < BEST_OF {
        all.extend(0..n);
        return;
    }
    let low = threshold(row.level, row.blocks, row.scale.max(), n / BEST_OF);
    let mut others = 0;
    for (b, &top) in row.blocks.iter().enumerate() {
        // Any number of blocks may have the same maximum.
        if top > low || (top == low && all.len() < n / BEST_OF * 2) {
            all.push(b);
        } else {
            if others % ONE_OF == 0 {
                some.push(b);
            }
            others += 1;
        }
    }
}

/// About the number of tokens on each step of a grid.
fn count_blocks<E: Element>(
    row: &Row<'_, E>,
    grid: Grid,
    blocks: &[Vec<usize>; 2],
    counters: &mut Counters,
    out: &mut [u32],
) {
    for (blocks, factor) in blocks.iter().zip([1, ONE_OF as u32]) {
        let blocks = blocks.iter().copied();
        count(row.level, row.data, grid, blocks, factor, counters, out);
    }
}

/// A finer grid for the step that holds most of a row's tokens, unless they are all the same or have no mass.
fn zoom<E: Element>(row: &Row<'_, E>, grid: Grid, counts: &[u32]) -> Option<Zoom> {
    let (step, &most) = counts[..STEPS - 1].iter().enumerate().max_by_key(|(_, n)| **n)?;
    if (most as usize) < row.data.len() / CROWDED {
        return None;
    }
    let end = if step == 0 { f32::INFINITY } else { grid.end(step - 1) };
    let (least, top) = survey(row.level, row.data, Between { low: grid.end(step), end }).extent;
    (least < top).then(|| Zoom { step, grid: Grid::new(top, least) })
}

/// A place in the rank.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// Where the cumulative mass exceeds the first, if the total is the second.
    Mass(u64, u64),
    /// This many tokens from the top.
    Count(u64),
}

/// A step with what lies above it.
struct At {
    step: usize,
    count: u64,
    mass: u64,
}

/// So that a decision can be tried on it, to see what it depends on.
impl Ranked for Sketch<'_> {
    fn seek(&mut self, seek: Seek) -> Result<Prefix, Need> {
        let (at, spot) = match seek {
            Seek::Mass(mass) => {
                let place = Place::Mass(mass, self.total);
                let at = self.find(place);
                (At { mass: mass.saturating_add(1).min(self.total), ..at }, self.spot(place))
            }
            Seek::Count(count) => (self.find(Place::Count(count)), self.spot(Place::Count(count))),
            Seek::Weight(_) | Seek::Logit(_) => {
                let logit = self.logit(seek);
                let step = self.step(logit);
                let mass = self.masses[..=step].iter().sum();
                (At { step, count: 1, mass }, Spot::at(self.range(step..=step)))
            }
        };
        self.wanted.push(spot);
        let bound = Candidate::new(0, self.middles[at.step]);
        Ok(Prefix { count: at.count.max(1), mass: at.mass.max(1), bound })
    }

    fn total(&self) -> Result<Bracket, Need> {
        Ok(Bracket::exact(self.total))
    }

    fn tokens(&mut self, _: Option<&Prefix>, _: &mut Vec<Candidate>) -> Result<Option<f32>, Need> {
        Err(Need::Depth)
    }

    fn moments(&mut self) -> Result<Moments, Need> {
        self.wanted.moments = true;
        // Without mass, an argument may be infinite.
        let steps = self.masses.iter().enumerate().filter(|(_, mass)| **mass > 0);
        let first: f64 = steps.map(|(step, &mass)| mass as f64 * self.argument(step)).sum();
        Ok(Moments {
            mass: self.total,
            first: first as i64,
            count: self.counts.iter().map(|&n| u64::from(n)).sum(),
        })
    }

    fn foresee(&mut self, moments: Moments, edge: u64, draw: &dyn Fn(u64) -> u64) {
        let (mean, total) = (moments.mean(), moments.mass);
        let kept = self.with_rings(mean, |rings| rings.kept(self.counts, edge, total));
        let ring = |target| Some(self.ring_around(mean, target, total, 1));
        self.wanted.rings = [ring(edge), ring(draw(kept))];
    }

    fn ring(&mut self, _: f64, _: u64, _: usize, _: &mut Vec<Candidate>) -> Result<Inside, Need> {
        Err(Need::Depth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::level::Level;

    /// Masked tokens are on the last step, and so is what lies lowest, but they are in no range.
    #[test]
    fn a_crowd_is_one_whatever_is_masked() {
        let logit = |i: usize| if i.is_multiple_of(3) { 20.0 } else { f32::NEG_INFINITY };
        let mut data: Vec<f32> = (0..30_000).map(logit).collect();
        data[0] = 20.5;
        let (mut blocks, mut memory) = (Vec::new(), Memory::default());
        let row = Row::new(&data, 1.0, 0.0, Level::best(), Some(&mut blocks)).unwrap();
        let sketch = Sketch::new(&row, true, &mut memory);
        let last = STEPS - 1;
        let crowds = [1..=last, 1..=last - 1, 0..=last, 0..=5, 1..=5, last..=last];
        let crowds = crowds.map(|steps| sketch.crowd(sketch.range(steps)));
        assert_eq!(crowds, [Some(9_999), Some(9_999), None, Some(1), Some(0), Some(20_000)]);
    }
}
