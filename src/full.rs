//! The whole rank of a row, for decisions that go deep. A sketch of the row says where they go, one exact pass gives the
//! masses above those places, and only the tokens there are looked at one by one. Nothing is sorted, and integer masses
//! make it the sorted walk's answer.

use crate::element::Element;
use crate::kernels::{
    Between, Candidate, ENDS, STEPS, collect_between, collect_ranges, mass, masses_above,
    nth_equal, survey,
};
use crate::rank::{Bracket, Inside, Need, Prefix, Ranked, Seek, weight_of_mass};
use crate::ring::Rings;
use crate::row::Row;
use crate::select::{Buffers, Keyed, Target, select};
use crate::sketch::{self, Place, Sketch, Wanted};
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

/// Reused memory of [`Full`].
#[derive(Debug, Default)]
pub(crate) struct Memory {
    sketch: sketch::Memory,
    lists: [List; ENDS],
    work: List,
    weighing: Weighing,
    buffers: Buffers,
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

/// All tokens of a row that have mass.
pub(crate) struct Full<'a, E> {
    row: &'a Row<'a, E>,
    sketch: Sketch<'a>,
    total: u64,
    parts: [Option<Part>; ENDS],
    lists: &'a mut [List; ENDS],
    work: &'a mut List,
    weighing: &'a mut Weighing,
    buffers: &'a mut Buffers,
}

impl<'a, E: Element> Full<'a, E> {
    /// A pass over the row for the sketch, on which `forecast` is tried to see what it will seek, and an exact pass for
    /// that. `total` is the exact total, where it is known.
    pub fn new(
        row: &'a Row<'a, E>,
        total: Option<u64>,
        memory: &'a mut Memory,
        forecast: impl FnOnce(&mut Sketch<'_>),
    ) -> Self {
        let Memory { sketch, lists, work, weighing, buffers } = memory;
        let mut sketch = Sketch::new(row, sketch);
        forecast(&mut sketch);
        let wanted = sketch.wanted();
        let parts = [None; ENDS];
        let mut full = Self { row, sketch, total: 0, parts, lists, work, weighing, buffers };
        match total {
            Some(total) if wanted.len == 0 => full.total = total,
            _ => full.look(wanted),
        }
        full
    }

    /// One exact pass for the masses, one more for the tokens.
    fn look(&mut self, wanted: Wanted) {
        let Row { level, data, blocks, scale, .. } = *self.row;
        let (total, above) = masses_above(level, data, scale, wanted.ranges.map(|r| r.end));
        self.total = total;
        self.parts = [None; ENDS];
        let [a, b] = wanted.ranges;
        let equal = [(0, a), (1, b)].map(|(i, range)| {
            // The same range may be wanted twice.
            let known = i >= wanted.len || (i > 0 && range == a);
            known || self.equal(i, range, above[i])
        });
        let [first, second] = self.lists.each_mut().map(|list| {
            list.tokens.clear();
            &mut list.tokens
        });
        let counts = match equal {
            [true, true] => return,
            [false, true] => [collect_between(level, data, blocks, a, first), 0],
            [true, false] => [0, collect_between(level, data, blocks, b, second)],
            [false, false] => collect_ranges(level, data, blocks, [a, b], [first, second]),
        };
        for i in (0..ENDS).filter(|&i| !equal[i]) {
            let List { tokens, masses } = &mut self.lists[i];
            masses.clear();
            let weights = self.weighing.weigh(level, scale, tokens);
            masses.extend(weights.iter().map(|&w| mass(w)));
            let inside = (tokens.len() as u64, masses.iter().sum());
            let above = (counts[i], above[i]);
            self.parts[i] = Some(Part { range: wanted.ranges[i], above, inside, equal: None });
        }
    }

    /// Whether a range, above which lies a mass, holds many tokens, all with the same logit.
    fn equal(&mut self, i: usize, range: Between, mass_above: u64) -> bool {
        if range.low >= range.end || self.sketch.count(range) < MANY {
            return false;
        }
        let Row { level, data, scale, .. } = *self.row;
        let found = survey(level, data, range);
        let (lowest, highest) = found.extent;
        if lowest != highest {
            return false;
        }
        let inside = (found.inside, found.inside * scale.mass(lowest));
        let above = (found.above, mass_above);
        self.parts[i] = Some(Part { range, above, inside, equal: Some(lowest) });
        true
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
        for width in [0, 2, 16, STEPS] {
            if let Some(i) = self.part_of(target) {
                return self.select(i, target);
            }
            self.look(Wanted::one(self.sketch.around(place, width)));
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
    fn at_least(&mut self, logit: f32) -> Prefix {
        let range = Between { low: logit, end: logit };
        let known = |part: &Part| part.range == range;
        let part = match self.parts.iter().flatten().find(|part| known(part)) {
            Some(part) => *part,
            None => {
                self.look(Wanted::one(range));
                self.parts[0].unwrap_or(Part { range, above: (0, 0), inside: (0, 0), equal: None })
            }
        };
        let (count, mass) = part.above;
        Prefix { count, mass, bound: Candidate::new(u32::MAX, logit) }
    }
}

impl<E: Element> Ranked for Full<'_, E> {
    fn seek(&mut self, seek: Seek) -> Result<Prefix, Need> {
        match seek {
            Seek::Mass(m) => self.find(Target::Mass(m)),
            Seek::Count(c) => self.find(Target::Count(c)),
            Seek::Weight(_) | Seek::Logit(_) => Some(self.at_least(self.sketch.logit(seek))),
        }
        .ok_or(Need::Depth)
    }

    fn total(&self) -> Result<Bracket, Need> {
        Ok(Bracket::exact(self.total))
    }

    fn tokens(
        &mut self,
        prefix: Option<&Prefix>,
        out: &mut Vec<Candidate>,
    ) -> Result<Option<f32>, Need> {
        let with_mass = self.row.scale.logit_of(weight_of_mass(1));
        let low = prefix.map_or(with_mass, |p| p.bound.logit().max(with_mass));
        let Row { level, data, blocks, .. } = *self.row;
        out.clear();
        collect_between(level, data, blocks, Between::from(low), out);
        if let Some(prefix) = prefix {
            out.retain(|t| *t <= prefix.bound);
        }
        Ok(None)
    }

    fn ring(
        &mut self,
        mean: f64,
        target: u64,
        width: usize,
        out: &mut Vec<Candidate>,
    ) -> Result<Inside, Need> {
        let rings = Rings { masses: self.sketch.masses(), distance: self.sketch.distance(), mean };
        let (outer, inner) = rings.around(target, self.total, width);
        let outer = self.sketch.range(outer);
        let inner = inner.map(|inner| self.sketch.range(inner));
        let wanted = match inner {
            None => Wanted::one(outer),
            Some(inner) => Wanted::two(
                Between { low: inner.end, end: outer.end },
                Between { low: outer.low, end: inner.low },
            ),
        };
        self.look(wanted);

        // How far from the mean a logit's tokens are. None lies beyond the ends of the row.
        let row = self.row;
        let x = |logit: f32| f64::from(row.scale.argument(logit));
        let above = if outer.end > row.scale.max() { f64::INFINITY } else { x(outer.end) - mean };
        let whole = outer.low <= self.sketch.lowest();
        let below = if whole { f64::INFINITY } else { mean - x(outer.low) };
        let mut inside = Inside { count: 0, mass: 0, within: -1.0, beyond: above.min(below) };
        if let (Some(inner), [Some(upper), Some(lower)]) = (inner, self.parts) {
            let end = inner.end.min(row.scale.max());
            inside.within = (x(end) - mean).abs().max((x(inner.low) - mean).abs());
            inside.count = lower.above.0 - upper.above.0 - upper.inside.0;
            inside.mass = lower.above.1 - upper.above.1 - upper.inside.1;
        }

        out.clear();
        let parts: [_; ENDS] = self.parts.map(|part| part.filter(|part| part.inside.0 > 0));
        if let [Some(Part { equal: Some(value), inside: (count, _), .. }), None]
        | [None, Some(Part { equal: Some(value), inside: (count, _), .. })] = parts
        {
            // Equal logits deviate equally and go by id here, too.
            let each = row.scale.mass(value);
            let before = (target.saturating_sub(inside.mass) / each).min(count - 1);
            out.push(self.nth_equal(value, before).ok_or(Need::Depth)?);
            inside.count += before;
            inside.mass += before * each;
            return Ok(inside);
        }
        for (part, list) in parts.iter().zip(&*self.lists) {
            match part {
                Some(Part { equal: Some(_), range, .. }) => {
                    collect_between(row.level, row.data, row.blocks, *range, out);
                }
                Some(_) => out.extend_from_slice(&list.tokens),
                None => {}
            }
        }
        out.sort_unstable_by_key(|t| t.id());
        Ok(inside)
    }
}
