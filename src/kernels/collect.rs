//! The tokens of a row whose logits reach a threshold.

use super::scan::{BLOCK, scan};
use super::{blocks_of, first_fault};
use crate::element::{Element, LANES};
use crate::error::Error;
use crate::level::Level;
use pulp::{Simd, WithSimd};

/// A token id and its logit in one integer that orders as the rank does: larger logit first, equal logits
/// (`-0.0` equals `+0.0`) by smaller id.
///
/// ```
/// use sortless::kernels::Candidate;
/// let mut list = [Candidate::new(0, 1.0), Candidate::new(7, 2.0), Candidate::new(3, 2.0)];
/// list.sort_unstable();
/// assert_eq!(list.map(|c| c.id()), [3, 7, 0]);
/// assert_eq!(list[0].logit(), 2.0);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Candidate(u64);

impl Candidate {
    /// Ranks after every token.
    pub(crate) const LAST: Self = Self(u64::MAX);

    /// Packs a token. `-0.0` becomes `+0.0`.
    #[inline(always)]
    pub fn new(id: u32, logit: f32) -> Self {
        // Adding +0 turns -0 into +0. Then: positive floats ascend with their bits, negative ones descend.
        let bits = (logit + 0.0).to_bits();
        let descending = if bits >> 31 == 0 { bits ^ 0x7fff_ffff } else { bits };
        Self(u64::from(descending) << 32 | u64::from(id))
    }

    /// The token id.
    #[inline(always)]
    pub fn id(self) -> u32 {
        self.0 as u32
    }

    /// The logit.
    #[inline(always)]
    pub fn logit(self) -> f32 {
        let key = self.rank_key();
        f32::from_bits(if key >> 31 == 0 { key ^ 0x7fff_ffff } else { key })
    }

    /// The logit's place in the rank: smaller is better, equal logits have equal keys.
    #[inline(always)]
    pub(crate) fn rank_key(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

impl core::fmt::Debug for Candidate {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Candidate({}, {:?})", self.id(), self.logit())
    }
}

/// Which logits to collect: `low <= logit < end`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Between {
    pub low: f32,
    pub end: f32,
}

impl Between {
    /// No logit.
    pub const NOTHING: Self = Self::from(f32::INFINITY);

    /// All from `low` on.
    pub const fn from(low: f32) -> Self {
        Self { low, end: f32::INFINITY }
    }
}

/// Blocks that are picked out together, without a branch that depends on each, before the first of them is looked at: a
/// CPU then fetches several at a time.
const STRETCH: usize = 256;

struct Pass<'a, 'b, E, const N: usize> {
    row: &'a [E],
    /// The maximum of each block, to skip blocks by.
    blocks: &'a [f32],
    ranges: [Between; N],
    /// Stops soon after this many in a range.
    limit: usize,
    outs: [&'b mut Vec<Candidate>; N],
}

impl<E: Element, const N: usize> WithSimd for Pass<'_, '_, E, N> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) {
        let Self { row, blocks, ranges, limit, mut outs } = self;
        let (full, last) = blocks_of(row);
        let least = ranges.iter().fold(f32::INFINITY, |least, range| least.min(range.low));
        let bounds = ranges.map(
            #[inline(always)]
            |range| [range.low, range.end].map(|l| s.splat_f32s(E::key_at_least(l))),
        );
        let (zero, one) = (s.splat_u32s(0), s.splat_u32s(1));
        let mut found = [Candidate(0); BLOCK];
        let mut reaching = [0; STRETCH];
        for (stretch, tops) in blocks.chunks(STRETCH).enumerate() {
            let mut count = 0;
            for (i, top) in tops.iter().enumerate() {
                reaching[count] = stretch * STRETCH + i;
                count += usize::from(*top >= least);
            }
            for &b in &reaching[..count] {
                let block = full.get(b).unwrap_or(&last);
                // As many vectors at once as a word has bits: vector `i` has bit `i` of every lane.
                for (part, tokens) in block.chunks(32 * S::F32_LANES).enumerate() {
                    let mut words = [zero; N];
                    let mut bit = one;
                    for group in tokens.as_chunks().0 {
                        for &key in S::as_simd_f32s(&E::keys(group)).0 {
                            for (word, &[low, end]) in words.iter_mut().zip(&bounds) {
                                let reaches = s.greater_than_or_equal_f32s(key, low);
                                let inside = s.and_m32s(reaches, s.less_than_f32s(key, end));
                                *word = s.or_u32s(*word, s.select_u32s(inside, bit, zero));
                            }
                            bit = s.add_u32s(bit, bit);
                        }
                    }
                    let id = b * BLOCK + part * 32 * S::F32_LANES;
                    for (word, out) in words.into_iter().zip(&mut outs) {
                        let mut inside = [0u32; LANES];
                        S::as_mut_simd_u32s(&mut inside).0[0] = word;
                        let mut any = 0;
                        for &word in inside.iter().take(S::U32_LANES) {
                            any |= word;
                        }
                        let mut n = 0;
                        while any != 0 {
                            let i = any.trailing_zeros() as usize;
                            any &= any - 1;
                            let start = i * S::F32_LANES;
                            for (slot, v) in tokens[start..][..S::F32_LANES].iter().enumerate() {
                                found[n] = Candidate::new((id + start + slot) as u32, v.to_f32());
                                n += (inside[slot] >> i & 1) as usize;
                            }
                        }
                        if n > 0 {
                            out.extend_from_slice(&found[..n]);
                        }
                    }
                }
                if outs.iter().any(|out| out.len() > limit) {
                    return;
                }
            }
        }
    }
}

/// Appends the tokens of a scanned row with logits in each of `ranges` to the list beside it, by ascending id. `blocks` are
/// the block maxima.
#[inline]
pub(crate) fn collect_ranges<E: Element, const N: usize>(
    level: Level,
    row: &[E],
    blocks: &[f32],
    ranges: [Between; N],
    outs: [&mut Vec<Candidate>; N],
) {
    level.run(Pass { row, blocks, ranges, limit: usize::MAX, outs });
}

/// [`collect_ranges`] for one.
#[inline]
pub(crate) fn collect_between<E: Element>(
    level: Level,
    row: &[E],
    blocks: &[f32],
    range: Between,
    out: &mut Vec<Candidate>,
) {
    collect_ranges(level, row, blocks, [range], [out]);
}

/// Replaces `out` by the tokens in a range, by ascending id; stops soon after `limit` of them.
#[inline]
pub(crate) fn collect_some<E: Element>(
    level: Level,
    row: &[E],
    blocks: &[f32],
    range: Between,
    limit: usize,
    out: &mut Vec<Candidate>,
) {
    out.clear();
    level.run(Pass { row, blocks, ranges: [range], limit, outs: [out] });
}

/// Replaces `out` by the tokens whose logit is at least `threshold`, by ascending id. Masked tokens (-inf) are never
/// collected.
///
/// It reads the row once for its maximum and its faults, then only the blocks of 128 that reach the threshold.
/// Allocates where `out` is too small, and for the block maxima.
///
/// # Errors
/// [`Error::RowLength`] over `2^20` logits; [`Error::NotFinite`] with the lowest index that holds NaN or +inf;
/// [`Error::Parameter`] if the threshold is NaN. `out` is untouched then.
///
/// ```
/// use sortless::{kernels::collect, Level};
/// let mut found = Vec::new();
/// collect(Level::best(), &[0.5f32, 2.0, -1.0, 2.5], 2.0, &mut found)?;
/// assert_eq!(found.iter().map(|c| (c.id(), c.logit())).collect::<Vec<_>>(), [(1, 2.0), (3, 2.5)]);
/// # Ok::<(), sortless::Error>(())
/// ```
pub fn collect<E: Element>(
    level: Level,
    row: &[E],
    threshold: f32,
    out: &mut Vec<Candidate>,
) -> Result<(), Error> {
    if row.len() > crate::MAX_VOCAB {
        return Err(Error::RowLength { len: row.len() });
    }
    if threshold.is_nan() {
        let value = crate::error::Number(f64::from(threshold));
        return Err(Error::Parameter { name: "threshold", value, expected: "a number" });
    }
    let mut blocks = vec![0.0; row.len().div_ceil(BLOCK)];
    if !scan(level, row, &mut blocks).clean
        && let Some(error) = first_fault(row)
    {
        return Err(error);
    }
    out.clear();
    collect_between(level, row, &blocks, Between::from(threshold.max(f32::MIN)), out);
    Ok(())
}
