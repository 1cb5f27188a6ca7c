//! Several things done to a row, and to the rows of a batch.

use super::{
    Tally, allow, bias, block, mask, packed_mask, presence_frequency_penalty, repetition_penalty,
    sparse_bias, temperature,
};
use crate::batch::{Pool, check_length as same_length};
use crate::error::Error;

/// One thing to do to a row.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Op<'a> {
    /// [`mask`].
    Mask(&'a [bool]),
    /// [`packed_mask`].
    PackedMask(&'a [u32]),
    /// [`allow`].
    Allow(&'a [u32]),
    /// [`block`].
    Block(&'a [u32]),
    /// [`bias`].
    Bias(&'a [f32]),
    /// [`sparse_bias`].
    SparseBias(&'a [(u32, f32)]),
    /// [`repetition_penalty`].
    RepetitionPenalty {
        /// The tokens to penalize.
        history: &'a [u32],
        /// At least 1.
        penalty: f32,
    },
    /// [`presence_frequency_penalty`].
    PresenceFrequencyPenalty {
        /// The tokens to penalize.
        history: &'a [u32],
        /// Once per distinct token.
        presence: f32,
        /// Once per occurrence.
        frequency: f32,
    },
    /// [`temperature`].
    Temperature(f32),
}

impl Op<'_> {
    fn apply(&self, row: &mut [f32], tally: &mut Tally) -> Result<(), Error> {
        match *self {
            Self::Mask(allowed) => mask(row, allowed),
            Self::PackedMask(words) => packed_mask(row, words),
            Self::Allow(ids) => allow(row, ids, tally),
            Self::Block(ids) => block(row, ids, tally),
            Self::Bias(biases) => bias(row, biases),
            Self::SparseBias(biases) => sparse_bias(row, biases, tally),
            Self::RepetitionPenalty { history, penalty } => {
                repetition_penalty(row, history, penalty, tally)
            }
            Self::PresenceFrequencyPenalty { history, presence, frequency } => {
                presence_frequency_penalty(row, history, presence, frequency, tally)
            }
            Self::Temperature(t) => temperature(row, t),
        }
    }
}

/// Does several things to a row in the order given, all or none.
///
/// # Errors
/// That of the first that fails; the row is what it was before all of them.
pub fn apply(row: &mut [f32], ops: &[Op<'_>], tally: &mut Tally) -> Result<(), Error> {
    if let [op] = ops {
        return op.apply(row, tally);
    }
    let mut before = core::mem::take(&mut tally.before);
    before.clear();
    before.extend_from_slice(row);
    let result = ops.iter().try_for_each(|op| op.apply(row, tally));
    if result.is_err() {
        row.copy_from_slice(&before);
    }
    tally.before = before;
    result
}

/// Does to each row of a batch what stands beside it, spread over rayon's threads if the feature `rayon` is on. A row depends on nothing but itself
/// and its own list. `ops` holds one list a row, or one for all.
///
/// # Errors
/// [`Error::Shape`] if the lengths don't fit. What is wrong with a row stands in its own result; that row is untouched.
///
/// ```
/// use sortless::process::{Op, apply_batch};
/// let (mut a, mut b) = ([1.0f32, 2.0], [3.0f32, 4.0]);
/// let results = apply_batch(&mut [&mut a, &mut b], &[&[Op::Block(&[0])], &[Op::Block(&[0, 1])]])?;
/// assert!(results[0].is_ok() && results[1].is_err());
/// assert_eq!((a, b), ([f32::NEG_INFINITY, 2.0], [3.0, 4.0]));
/// # Ok::<(), sortless::Error>(())
/// ```
pub fn apply_batch(
    rows: &mut [&mut [f32]],
    ops: &[&[Op<'_>]],
) -> Result<Vec<Result<(), Error>>, Error> {
    if ops.len() != 1 {
        same_length("number of lists (1 or one a row)", rows.len(), ops.len())?;
    }
    let mut results = vec![Ok(()); rows.len()];
    Pool::new(true).each_pair(rows, &mut results, |i, scratch, row, result| {
        let ops = if ops.len() == 1 { ops[0] } else { ops[i] };
        *result = apply(row, ops, &mut scratch.tally);
    });
    Ok(results)
}
