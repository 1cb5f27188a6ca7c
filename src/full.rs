//! The whole rank of a row, for decisions that go deep. A sketch of the row says where they go, one exact pass gives numbers
//! and masses above those places, and only the tokens there are looked at one by one. Nothing is sorted, and integer masses
//! make it the sorted walk's answer.

use crate::element::Element;
use crate::kernels::{
    Between, Candidate, Moments, ONE, Survey, collect_between, collect_ranges, mass, masses_above,
    moments, moments_above, nth_equal, survey,
};
use crate::rank::{Bracket, Inside, Need, Prefix, Ranked, Seek};
use crate::row::Row;
use crate::select::{Buffers, Keyed, Target, select};
use crate::sketch::{self, Place, Ring, SOUGHT, Sketch, Spot, Wanted};
use crate::weighing::Weighing;

impl Keyed for Candidate {
    fn key(&self) -> u64 {
        u64::from(self.rank_key())
    }
}

/// Tokens, by id, and their masses.
#[derive(Debug, Default)]
struct List {
    tokens: Vec<Candidate>,
    masses: Vec<u64>,
}

/// Places that one pass can look at: a ring has two.
const PLACES: usize = 2 * SOUGHT;

/// Reused memory of [`Full`].
#[derive(Debug, Default)]
pub(crate) struct Memory {
    sketch: sketch::Memory,
    lists: [List; PLACES],
    work: List,
    weighing: Weighing,
    buffers: Buffers,
}

/// What is known of a row before its whole rank is looked at, all of it exact.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub total: Option<u64>,
    pub moments: Option<Moments>,
}

/// From so many tokens on it is worth a pass to see whether they are all equal.
const MANY: u64 = 4096;

/// What is known of a range of logits, all of it exact.
#[derive(Clone, Copy, Debug)]
struct Part {
    range: Between,
    /// Number and mass of the tokens above it.
    above: (u64, u64),
    /// Number and mass of its tokens.
    inside: (u64, u64),
    /// The logit of its tokens, if they are many and all have the same. They are not listed then.
    equal: Option<f32>,
}

/// A logit, and number and mass of the tokens at or above it, exact. With a list of the tokens on both sides of it they
/// give what lies above the list.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    logit: f32,
    above: (u64, u64),
}

impl Anchor {
    fn is_in(&self, range: Between) -> bool {
        range == Between::NOTHING || (range.low <= self.logit && self.logit <= range.end)
    }
}

/// All tokens of a row that have mass.
pub(crate) struct Full<'a, E> {
    row: &'a Row<'a, E>,
    sketch: Sketch<'a>,
    /// The exact total, once it is known: it is not 0.
    total: u64,
    /// The moments, once they are known.
    moments: Option<Moments>,
    /// What is known, where it was sought, and what the last exact pass gave.
    parts: [Option<Part>; PLACES],
    spots: [Spot; PLACES],
    anchors: Option<[Anchor; PLACES]>,
    /// The rings whose parts these are, two of each, if they are any's.
    rings: [Option<Ring>; SOUGHT],
    /// How much was sought so far: the first that is sought looks at the first spot, and so on.
    sought: usize,
    lists: &'a mut [List; PLACES],
    work: &'a mut List,
    weighing: &'a mut Weighing,
    buffers: &'a mut Buffers,
}

impl<'a, E: Element> Full<'a, E> {
    /// A pass over the row for the sketch, on which `forecast` is tried to see what it will seek, and an exact pass for
    /// that. Where rings are sought, the sketch should be of the `whole` row.
    pub fn new(
        row: &'a Row<'a, E>,
        known: Known,
        whole: bool,
        memory: &'a mut Memory,
        forecast: impl FnOnce(&mut Sketch<'_>),
    ) -> Self {
        let Memory { sketch, lists, work, weighing, buffers } = memory;
        let mut sketch = Sketch::new(row, whole, sketch);
        forecast(&mut sketch);
        let Wanted { spots: [first, second], len, rings, .. } = sketch.wanted();
        let mut full = Self {
            row,
            sketch,
            total: known.total.unwrap_or(0),
            moments: known.moments,
            parts: [None; PLACES],
            spots: [first, second, Spot::NOWHERE, Spot::NOWHERE],
            anchors: None,
            rings: [None; SOUGHT],
            sought: 0,
            lists,
            work,
            weighing,
            buffers,
        };
        if rings.iter().any(Option::is_some) {
            full.look_at_rings(rings);
        } else if full.total == 0 || len > 0 {
            full.look();
        }
        full
    }

    /// Looks somewhere else for what is sought now.
    fn look_at(&mut self, spot: Spot) {
        self.rings = [None; SOUGHT];
        self.spots[self.sought.min(SOUGHT - 1)] = spot;
        self.look();
    }

    /// Looks at rings alone.
    fn look_at_rings(&mut self, mut rings: [Option<Ring>; SOUGHT]) {
        if rings[0] == rings[1] {
            rings[1] = None;
        }
        self.rings = rings;
        let [[a, b], [c, d]] =
            rings.map(|ring| ring.map_or([Spot::NOWHERE; 2], |ring| ring.spots()));
        self.spots = [a, b, c, d];
        self.look();
    }

    /// The anchors of the spots, by an exact pass where those of the last one don't do.
    fn anchors(&mut self) -> [Anchor; PLACES] {
        let Row { level, data, scale, .. } = *self.row;
        let spots = self.spots;
        let good = |anchors: &[Anchor; PLACES]| {
            anchors.iter().zip(&spots).all(|(anchor, spot)| anchor.is_in(spot.range))
        };
        if let Some(anchors) = self.anchors.filter(good) {
            return anchors;
        }
        let ends = spots.map(|spot| spot.range.end);
        let reached = ends.map(|end| end <= scale.max());
        let moments_missing = self.sketch.wanted().moments && self.moments.is_none();
        let mut above = [(0, 0); PLACES];
        if self.sketch.all_equal() {
            let count = data.len() as u64;
            self.total = count * ONE;
            self.moments = Some(Moments { mass: self.total, first: 0, count });
            above = reached.map(|reached| if reached { (count, self.total) } else { (0, 0) });
        } else if moments_missing && reached == [false; PLACES] {
            let found = moments(level, data, scale);
            (self.moments, self.total) = (Some(found), found.mass);
        } else if moments_missing || reached[SOUGHT..] != [false; SOUGHT] {
            // Only rings seek in so many places, and they start from the moments.
            let found;
            (found, above) = moments_above(level, data, scale, ends);
            (self.moments, self.total) = (Some(found), found.mass);
        } else if self.total == 0 || reached != [false; PLACES] {
            let found;
            (self.total, found) = masses_above(level, data, scale, [ends[0], ends[1]]);
            above[..found.len()].copy_from_slice(&found);
        }
        let anchors = core::array::from_fn(|i| Anchor { logit: ends[i], above: above[i] });
        self.anchors = Some(anchors);
        anchors
    }

    /// A pass for the tokens, after one for the masses where that is needed.
    fn look(&mut self) {
        let Row { level, data, blocks, scale, .. } = *self.row;
        let anchors = self.anchors();
        let ranges: [_; PLACES] = core::array::from_fn(|i| {
            self.sketch.narrow(self.spots[i], self.total, anchors[i].above)
        });
        debug_assert!(anchors.iter().zip(ranges).all(|(anchor, range)| anchor.is_in(range)));
        // Two seeks may lead to the same place; the parts of rings never coincide, unless they are empty.
        let here: [_; PLACES] = core::array::from_fn(|i| {
            ranges[i] != Between::NOTHING && !(i == 1 && ranges[0] == ranges[1])
        });
        let surveys: [_; PLACES] =
            core::array::from_fn(|i| if here[i] { self.equals(ranges[i]) } else { None });

        let [a, b, c, d] = core::array::from_fn(|i| {
            if here[i] && surveys[i].is_none() { ranges[i] } else { Between::NOTHING }
        });
        let lists = self.lists.each_mut().map(|list| {
            list.tokens.clear();
            &mut list.tokens
        });
        let [first, second, third, fourth] = lists;
        match [a, b, c, d].map(|range| range != Between::NOTHING) {
            [false, false, false, false] => {}
            [true, false, false, false] => collect_between(level, data, blocks, a, first),
            [_, _, false, false] => {
                collect_ranges(level, data, blocks, [a, b], [first, second]);
            }
            _ => {
                let outs = [first, second, third, fourth];
                collect_ranges(level, data, blocks, [a, b, c, d], outs);
            }
        }
        for i in 0..PLACES {
            if !here[i] {
                self.parts[i] = None;
                continue;
            }
            let Anchor { logit, above: (mut count, mut mass_above) } = anchors[i];
            let (inside, equal) = match surveys[i] {
                Some(Survey { inside, extent: (value, _) }) => {
                    let inside = (inside, inside * scale.mass(value));
                    if value >= logit {
                        (count, mass_above) = (count - inside.0, mass_above - inside.1);
                    }
                    (inside, Some(value))
                }
                None => {
                    let List { tokens, masses } = &mut self.lists[i];
                    masses.clear();
                    let weights = self.weighing.weigh(level, scale, tokens);
                    masses.extend(weights.iter().map(|&w| mass(w)));
                    for (_, m) in tokens.iter().zip(&*masses).filter(|(t, _)| t.logit() >= logit) {
                        (count, mass_above) = (count - 1, mass_above - m);
                    }
                    ((tokens.len() as u64, masses.iter().sum()), None)
                }
            };
            self.parts[i] =
                Some(Part { range: ranges[i], above: (count, mass_above), inside, equal });
        }
    }

    /// What a range holds, if it holds many tokens and all have the same logit.
    fn equals(&self, range: Between) -> Option<Survey> {
        if range.low >= range.end || self.sketch.crowd(range).is_none_or(|crowd| crowd < MANY) {
            return None;
        }
        let found = survey(self.row.level, self.row.data, range);
        (found.extent.0 == found.extent.1).then_some(found)
    }

    /// The two parts of a ring.
    fn parts_of(&self, i: usize) -> [Option<Part>; 2] {
        [self.parts[2 * i], self.parts[2 * i + 1]]
    }

    /// Number and mass of the tokens inside of a ring.
    fn within(&self, i: usize) -> (u64, u64) {
        match self.parts_of(i) {
            [Some(upper), Some(lower)] => (
                lower.above.0 - upper.above.0 - upper.inside.0,
                lower.above.1 - upper.above.1 - upper.inside.1,
            ),
            // The inner range reaches up to the best token.
            [None, Some(lower)] => lower.above,
            _ => (0, 0),
        }
    }

    /// The ring that is known, is at least so wide and holds the token at which a mass is exceeded.
    fn ring_of(&self, target: u64, width: usize) -> Option<usize> {
        (0..SOUGHT).filter(|&i| self.rings[i].is_some_and(|ring| ring.width >= width)).find(|&i| {
            let before = self.within(i).1;
            let inside: u64 = self.parts_of(i).iter().flatten().map(|part| part.inside.1).sum();
            before <= target && target - before < inside
        })
    }

    /// The part in which a target surely lies.
    fn part_of(&self, target: Target) -> Option<usize> {
        let lowest = self.sketch.lowest();
        (0..self.parts.len()).find(|&i| {
            self.parts[i].is_some_and(|part| {
                let (count, mass) = part.above;
                // What is sought beyond the last token is that token.
                let last = part.range.low <= lowest && part.inside.0 > 0;
                match target {
                    Target::Mass(m) => mass <= m && (last || m < mass + part.inside.1),
                    Target::Count(c) => count < c && (last || c <= count + part.inside.0),
                }
            })
        })
    }

    /// The token where a target is reached. First where the sketch expects it, then in ever more of the row.
    fn find(&mut self, target: Target) -> Option<Prefix> {
        let place = match target {
            Target::Mass(m) => Place::Mass(m, self.total),
            Target::Count(c) => Place::Count(c),
        };
        // The place itself, out of a sample, was tried with the first look.
        for more in [0, 1024, 8192, u64::MAX].into_iter().skip(self.sketch.is_sampled().into()) {
            if let Some(i) = self.part_of(target) {
                return self.select(i, target);
            }
            self.look_at(self.sketch.around(place, more));
        }
        let i = self.part_of(target)?;
        self.select(i, target)
    }

    /// The token of a part where a target is reached.
    fn select(&mut self, i: usize, target: Target) -> Option<Prefix> {
        let part = self.parts[i]?;
        let (count, mass) = part.above;
        let target = match target {
            Target::Mass(m) => Target::Mass(m - mass),
            Target::Count(c) => Target::Count(c - count),
        };
        if let Some(value) = part.equal {
            let each = self.row.scale.mass(value);
            let before = match target {
                Target::Mass(m) => m / each,
                Target::Count(c) => c - 1,
            };
            let before = before.min(part.inside.0 - 1);
            let bound = self.nth_equal(value, before)?;
            return Some(Prefix {
                count: count + before + 1,
                mass: mass + (before + 1) * each,
                bound,
            });
        }
        let (list, work) = (&self.lists[i], &mut *self.work);
        work.tokens.clone_from(&list.tokens);
        work.masses.clone_from(&list.masses);
        let found = select(&mut work.tokens, &mut work.masses, target, self.buffers)?;
        Some(Prefix { count: count + found.count, mass: mass + found.mass, bound: found.entry })
    }

    fn nth_equal(&self, value: f32, n: u64) -> Option<Candidate> {
        let Row { level, data, blocks, .. } = *self.row;
        let id = nth_equal(level, data, blocks, value, n)?;
        Some(Candidate::new(id as u32, value))
    }

    /// All tokens with at least a logit, which has mass.
    fn at_least(&mut self, logit: f32) -> Option<Prefix> {
        let place = |parts: &[Option<Part>; PLACES]| {
            let holds = |part: &Part| part.range.low <= logit && logit <= part.range.end;
            parts.iter().position(|part| part.as_ref().is_some_and(holds))
        };
        if place(&self.parts).is_none() {
            self.look_at(Spot::at(Between { low: logit, end: logit }));
        }
        let i = place(&self.parts)?;
        let part = self.parts[i]?;
        let (mut count, mut mass) = part.above;
        match part.equal {
            Some(value) if value >= logit => {
                count += part.inside.0;
                mass += part.inside.1;
            }
            Some(_) => {}
            None => {
                let List { tokens, masses } = &self.lists[i];
                for (_, m) in tokens.iter().zip(masses).filter(|(t, _)| t.logit() >= logit) {
                    count += 1;
                    mass += m;
                }
            }
        }
        Some(Prefix { count, mass, bound: Candidate::new(u32::MAX, logit) })
    }
}

impl<E: Element> Ranked for Full<'_, E> {
    fn seek(&mut self, seek: Seek) -> Result<Prefix, Need> {
        let found = match seek {
            Seek::Mass(m) => self.find(Target::Mass(m)),
            Seek::Count(c) => self.find(Target::Count(c)),
            Seek::Weight(_) | Seek::Logit(_) => self.at_least(self.sketch.logit(seek)),
        };
        self.sought += 1;
        found.ok_or(Need::Depth)
    }

    fn total(&self) -> Result<Bracket, Need> {
        Ok(Bracket::exact(self.total))
    }

    fn tokens(
        &mut self,
        prefix: Option<&Prefix>,
        out: &mut Vec<Candidate>,
    ) -> Result<Option<f32>, Need> {
        let Row { level, data, blocks, .. } = *self.row;
        let lowest = self.sketch.lowest();
        let Some(Prefix { count, bound, .. }) = prefix else {
            out.clear();
            collect_between(level, data, blocks, Between::from(lowest), out);
            return Ok(None);
        };
        let last = bound.logit().max(lowest);
        self.row.first_from(last, *count as usize, out, &mut self.work.tokens);
        out.sort_unstable_by_key(|t| t.id());
        Ok(None)
    }

    fn moments(&mut self) -> Result<Moments, Need> {
        let Row { level, data, scale, .. } = *self.row;
        Ok(*self.moments.get_or_insert_with(|| moments(level, data, scale)))
    }

    fn ring(
        &mut self,
        mean: f64,
        target: u64,
        width: usize,
        out: &mut Vec<Candidate>,
    ) -> Result<Inside, Need> {
        let i = match self.ring_of(target, width) {
            Some(i) => i,
            None => {
                let ring = self.sketch.ring_around(mean, target, self.total, width);
                self.look_at_rings([Some(ring), None]);
                0
            }
        };
        let Some(Ring { outer, inner, .. }) = self.rings[i] else { return Err(Need::Depth) };

        // How far from the mean a logit's tokens are. None lies beyond the ends of the row.
        let row = self.row;
        let x = |logit: f32| f64::from(row.scale.argument(logit));
        let above = if outer.end > row.scale.max() { f64::INFINITY } else { x(outer.end) - mean };
        let whole = outer.low <= self.sketch.lowest();
        let below = if whole { f64::INFINITY } else { mean - x(outer.low.next_down()) };
        let (count, mass) = self.within(i);
        let mut inside = Inside { count, mass, within: -1.0, beyond: above.min(below) };
        if let Some(inner) = inner.filter(|inner| inner.low < inner.end) {
            let highest = inner.end.next_down().min(row.scale.max());
            inside.within = (x(highest) - mean).abs().max((x(inner.low) - mean).abs());
        }

        out.clear();
        let parts = self.parts_of(i).map(|part| part.filter(|part| part.inside.0 > 0));
        let mut groups = parts.map(|part| {
            let value = part?.equal?;
            Some(((x(value) - mean).abs(), value, part?.inside))
        });
        let apart = groups[0].map(|group| group.0) != groups[1].map(|group| group.0);
        if apart && parts.iter().flatten().all(|part| part.equal.is_some()) {
            // Equal logits deviate equally and go by id here, too; the nearer ones go first.
            if groups[1].map(|group| group.0) < groups[0].map(|group| group.0) {
                groups.reverse();
            }
            for (i, &(deviation, value, (count, mass))) in groups.iter().flatten().enumerate() {
                let each = row.scale.mass(value);
                let rest = target.saturating_sub(inside.mass);
                if rest < mass || i + 1 == groups.iter().flatten().count() {
                    let before = (rest / each).min(count - 1);
                    out.push(self.nth_equal(value, before).ok_or(Need::Depth)?);
                    inside.count += before;
                    inside.mass += before * each;
                    return Ok(inside);
                }
                inside.within = inside.within.max(deviation);
                inside.count += count;
                inside.mass += mass;
            }
        }
        let [first, second] = &mut self.lists.as_chunks_mut().0[i];
        for (part, list) in parts.iter().zip([&mut *first, &mut *second]) {
            if let Some(Part { equal: Some(_), range, .. }) = part {
                list.tokens.clear();
                collect_between(row.level, row.data, row.blocks, *range, &mut list.tokens);
            }
        }
        merge(&first.tokens, &second.tokens, out);
        Ok(inside)
    }
}

/// Two lists of tokens, each by id, as one.
fn merge(mut a: &[Candidate], mut b: &[Candidate], out: &mut Vec<Candidate>) {
    while let ([first, after_first @ ..], [second, after_second @ ..]) = (a, b) {
        if first.id() < second.id() {
            out.push(*first);
            a = after_first;
        } else {
            out.push(*second);
            b = after_second;
        }
    }
    out.extend_from_slice(a);
    out.extend_from_slice(b);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::BLOCK;
    use crate::level::Level;

    const NOTHING: Known = Known { total: None, moments: None };

    /// Prefixes of a row of equal logits, with what a filter before them would have made the sketch look at, too.
    #[test]
    fn below_a_row_of_equal_logits_lies_nothing_and_above_that_everything() {
        let data = vec![1.0f32; 5000];
        let (mut blocks, mut memory) = (Vec::new(), Memory::default());
        let row = Row::new(&data, 1.0, 0.0, Level::best(), Some(&mut blocks)).unwrap();
        let mut full = Full::new(&row, NOTHING, false, &mut memory, |sketch| {
            let _ = sketch.seek(Seek::Count(10));
            let _ = sketch.seek(Seek::Weight(0.05));
        });
        let ten = full.seek(Seek::Count(10)).unwrap();
        assert_eq!((ten.count, ten.mass, ten.bound.id()), (10, 10 * crate::kernels::ONE, 9));
        let all = full.seek(Seek::Weight(0.05)).unwrap();
        assert_eq!((all.count, all.mass), (5000, 5000 * crate::kernels::ONE));
    }

    /// Rows whose sampled blocks are nothing like the others, so that the sketch looks in the wrong places.
    #[test]
    fn a_sample_that_misleads_does_not_mislead_the_answer() {
        let (mut blocks, mut memory) = (Vec::new(), Memory::default());
        let spread = |i: usize| (i * 7919 % 10_007) as f32 / 10_007.0;
        // The best blocks are all counted, and of the others one in four.
        const BEST: usize = 10;
        let sampled = |i: usize| (i / BLOCK).checked_sub(BEST).is_none_or(|b| b.is_multiple_of(4));
        // Two values alone, of which sampled blocks have half and half, and the others mostly one.
        let two = |most: f32, i: usize| {
            let share = if sampled(i) { 0.5 } else { 0.95 };
            if spread(i) < share { most } else { 1.0 - most }
        };
        let mut rows: Vec<Vec<f32>> =
            [0.0, 1.0].map(|m| (0..20_000).map(|i| two(m, i)).collect()).to_vec();
        for (inside, outside) in [(0.0, 1.5), (1.5, 0.0), (-40.0, 0.0), (0.0, 0.0)] {
            let logit = |i| spread(i) + if sampled(i) { inside } else { outside };
            rows.push((0..20_000).map(logit).collect());
        }
        for mut data in rows {
            // The largest of each block, so that only these tell which are like which.
            for (b, block) in data.chunks_mut(BLOCK).enumerate() {
                block[block.len() - 1] =
                    if b < BEST { 3.0 } else { 2.5 + (b * 37 % 157) as f32 / 1024.0 };
            }
            let row = Row::new(&data, 0.7, 0.0, Level::best(), Some(&mut blocks)).unwrap();
            let mut rank: Vec<Candidate> =
                data.iter().enumerate().map(|(i, &l)| Candidate::new(i as u32, l)).collect();
            rank.sort_unstable();
            rank.retain(|t| row.scale.mass(t.logit()) > 0);
            let mut sum = 0;
            let sums: Vec<u64> = rank
                .iter()
                .map(|t| {
                    sum += row.scale.mass(t.logit());
                    sum
                })
                .collect();
            for share in 0..40 {
                let target = sum / 40 * share;
                let mut full = Full::new(&row, NOTHING, false, &mut memory, |sketch| {
                    let _ = sketch.seek(Seek::Mass(target));
                    let _ = sketch.seek(Seek::Mass(sum - target));
                });
                // The later ones fall around what the first look knows.
                for more in [0, 3, 11, 37, 150] {
                    let target = (target + more * (sum / 20_000)).min(sum - 1);
                    let found = full.seek(Seek::Mass(target)).unwrap();
                    let n = sums.partition_point(|&sum| sum <= target);
                    let want = (n as u64 + 1, sums[n], rank[n].id());
                    let found = (found.count, found.mass, found.bound.id());
                    assert_eq!(found, want, "{share} {more}");
                }
                let mut full = Full::new(&row, NOTHING, false, &mut memory, |sketch| {
                    let _ = sketch.seek(Seek::Count(1 + share * 500));
                });
                for more in [0, 3, 11, 37, 150] {
                    let n = (1 + share * 500 + more).min(rank.len() as u64);
                    let found = full.seek(Seek::Count(n)).unwrap();
                    let last = rank[..n as usize].last().unwrap();
                    let want = (n, sums[n as usize - 1], last.id());
                    assert_eq!((found.count, found.mass, found.bound.id()), want, "{n}");
                }
            }
        }
    }
}
