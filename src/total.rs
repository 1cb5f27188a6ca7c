//! What is known of a row's total mass: bounds from ever more of the row, in the end the mass itself.

use crate::element::Element;
use crate::kernels::{BLOCK, ONE, cheap_bounds, masses_above, total_mass};
use crate::paths::Path;
use crate::rank::Bracket;
use crate::row::Row;

/// Reused memory of [`Total`].
#[derive(Debug, Default)]
pub(crate) struct Memory {
    sample: Vec<f32>,
    picked: Vec<usize>,
}

/// The cheap pass weighs a row's blocks in stages, those with the largest maxima first: after each stage but the last about
/// this share of them. Most of a peaked row's mass is in few blocks, and most decisions leave some room for the others.
const STAGES: [f32; 2] = [0.25, 0.625];

/// A stage waits for the next one if it would leave more than this part of the mass in doubt.
const VAGUE: u64 = 256;

/// What is known of a row's total mass, and by which path.
pub(crate) struct Total<'a, E> {
    row: &'a Row<'a, E>,
    memory: &'a mut Memory,
    pub path: Path,
    pub known: Option<Bracket>,
    /// The total is at least this, as the head of the rank knows.
    pub least: u64,
    /// Where each stage ends: its lowest block maximum, and the mass of the maxima below.
    ends: [(f32, u64); STAGES.len() + 1],
    /// The next stage.
    stage: usize,
    /// The blocks with at least this maximum have been weighed, and have this mass.
    reached: f32,
    weighed: Bracket,
}

impl<'a, E: Element> Total<'a, E> {
    /// Nothing is known, but `exact` if that is.
    pub fn new(row: &'a Row<'a, E>, exact: Option<u64>, memory: &'a mut Memory) -> Self {
        Self {
            row,
            memory,
            path: if exact.is_some() { Path::Exact } else { Path::Bounds },
            known: exact.map(Bracket::exact),
            least: ONE,
            ends: [(f32::MIN, 0); STAGES.len() + 1],
            stage: 0,
            reached: f32::INFINITY,
            weighed: Bracket::exact(0),
        }
    }

    /// The total itself, if it is known.
    pub fn exact(&self) -> Option<u64> {
        self.known.filter(|known| known.low == known.high).map(|known| known.low)
    }

    /// Takes the total itself.
    pub fn set(&mut self, exact: u64) {
        (self.path, self.known) = (Path::Exact, Some(Bracket::exact(exact)));
    }

    /// The next better bounds; `None` from the exact total on.
    pub fn improve(&mut self) -> Option<Bracket> {
        if self.path >= Path::Exact {
            return None;
        }
        let Row { level, data, scale, .. } = *self.row;
        (self.path, self.known) = match self.weigh() {
            Some(bounds) => (Path::Cheap, Some(bounds)),
            None => (Path::Exact, Some(Bracket::exact(total_mass(level, data, scale)))),
        };
        self.known
    }

    /// The next stage of the cheap pass, if there is one. A block that it leaves out has at least its maximum's mass, and at
    /// most that of as many tokens as it holds.
    fn weigh(&mut self) -> Option<Bracket> {
        if self.stage == 0 {
            self.plan();
        }
        let (end, others) = loop {
            let (end, others) = *self.ends.get(self.stage)?;
            self.stage += 1;
            let sharp = others.saturating_mul(BLOCK as u64) <= self.least / VAGUE;
            if sharp && end < self.reached {
                break (end, others);
            }
        };
        let Row { level, data, blocks, scale, .. } = *self.row;
        let picked = &mut self.memory.picked;
        picked.resize(blocks.len(), 0);
        let mut count = 0;
        for (b, &top) in blocks.iter().enumerate() {
            picked[count] = b;
            count += usize::from(end <= top && top < self.reached);
        }
        let (low, high) = cheap_bounds(level, data, scale, picked[..count].iter().copied())?;
        self.reached = end;
        self.weighed.low += low;
        self.weighed.high = self.weighed.high.saturating_add(high);
        Some(Bracket {
            low: self.least.max(self.weighed.low + others),
            high: self.weighed.high.saturating_add(others.saturating_mul(BLOCK as u64)),
        })
    }

    /// Where the stages end, as a sample of the block maxima suggests.
    fn plan(&mut self) {
        const SAMPLE: usize = 64;
        let Row { level, blocks, scale, .. } = *self.row;
        let sample = &mut self.memory.sample;
        sample.clear();
        sample.extend(blocks.iter().step_by(blocks.len().div_ceil(SAMPLE)));
        sample.sort_unstable_by(|a, b| b.total_cmp(a));
        let tops = STAGES.map(|share| sample[(sample.len() as f32 * share) as usize].max(f32::MIN));
        let (all, above) = masses_above(level, blocks, scale, tops);
        for (end, (top, above)) in self.ends.iter_mut().zip(tops.into_iter().zip(above)) {
            *end = (top, all - above.1);
        }
    }
}
