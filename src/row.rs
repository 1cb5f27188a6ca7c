//! A checked row: its maximum, its block maxima and the scale that makes weights of its logits.

use crate::element::Element;
use crate::error::{Error, Number};
use crate::kernels::{
    BLOCK, Between, Candidate, Scale, collect_between, collect_some, first_equal, first_fault, scan,
};
use crate::level::Level;

/// A row that may be sampled from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row<'a, E> {
    pub data: &'a [E],
    pub level: Level,
    pub scale: Scale,
    /// The maximum of each block of logits; empty if nobody wanted them.
    pub blocks: &'a [f32],
    /// The first block that holds the maximum, or one little before it; the maximum is in no earlier one.
    best_block: usize,
}

impl<'a, E: Element> Row<'a, E> {
    /// Checks a row and a draw, in the contract's order, in one pass. The temperature has been checked. `blocks` lends its
    /// memory for the block maxima; all but the best token and the scale need them.
    pub fn new(
        data: &'a [E],
        temperature: f32,
        u: f64,
        level: Level,
        blocks: Option<&'a mut Vec<f32>>,
    ) -> Result<Self, Error> {
        check_length(data.len())?;
        let blocks = blocks.map_or(&mut [][..], |memory| {
            memory.resize(data.len().div_ceil(BLOCK), 0.0);
            memory
        });
        let found = scan(level, data, blocks);
        if let Some(fault) = first_fault(if found.clean { &[] } else { data }) {
            return Err(fault);
        }
        if found.max == f32::NEG_INFINITY {
            return Err(Error::NoAllowedToken);
        }
        check_draw(u)?;
        let scale = Scale::checked(found.max, temperature);
        Ok(Self { data, level, scale, blocks, best_block: found.block })
    }

    /// The tokens above a logit by id, and after them the first ones at it until there are `n` together: those may be few of
    /// very many. `equal` lends its memory.
    pub fn first_from(
        &self,
        low: f32,
        n: usize,
        out: &mut Vec<Candidate>,
        equal: &mut Vec<Candidate>,
    ) {
        let Self { level, data, blocks, .. } = *self;
        let above = low.next_up();
        out.clear();
        collect_between(level, data, blocks, Between::from(above), out);
        let missing = n.saturating_sub(out.len());
        if missing > 0 {
            collect_some(level, data, blocks, Between { low, end: above }, missing, equal);
            out.extend(equal.iter().take(missing));
        }
    }

    /// The first of the largest logits.
    pub fn best(&self) -> Candidate {
        let id = first_equal(self.data, self.best_block, self.scale.max());
        Candidate::new(id as u32, self.scale.max())
    }
}

/// A row has 1 to `MAX_VOCAB` tokens.
pub(crate) fn check_length(len: usize) -> Result<(), Error> {
    if (1..=crate::MAX_VOCAB).contains(&len) { Ok(()) } else { Err(Error::RowLength { len }) }
}

/// A draw is in `[0, 1)`; NaN is not.
pub(crate) fn check_draw(u: f64) -> Result<(), Error> {
    if (0.0..1.0).contains(&u) { Ok(()) } else { Err(Error::Draw { u: Number(u) }) }
}
