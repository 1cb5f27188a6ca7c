//! The tokens of a row whose logits reach a threshold.

use super::first_fault;
use super::scan::{BLOCK, scan};
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
#[derive(Clone, Copy, Debug)]
pub(crate) struct Between {
    pub low: f32,
    pub end: f32,
}

impl Between {
    /// All from `low` on.
    pub fn from(low: f32) -> Self {
        Self { low, end: f32::INFINITY }
    }
}

struct Pass<'a, E> {
    row: &'a [E],
    /// The maximum of each block, to skip blocks by.
    blocks: &'a [f32],
    range: Between,
    /// Stops soon after this many.
    limit: usize,
    out: &'a mut Vec<Candidate>,
}

/// Appends those of a group's tokens that are in the range; counts those at or above its end.
#[inline(always)]
fn append<E: Element>(
    start: usize,
    group: &[E],
    range: Between,
    out: &mut Vec<Candidate>,
) -> usize {
    let mut n = out.len();
    out.resize(n + LANES, Candidate(0));
    let mut above = 0;
    for (slot, v) in group.iter().enumerate() {
        let logit = v.to_f32();
        out[n] = Candidate::new((start + slot) as u32, logit);
        let ends = logit >= range.end;
        above += usize::from(ends);
        n += usize::from(logit >= range.low && !ends);
    }
    out.truncate(n);
    above
}

impl<E: Element> WithSimd for Pass<'_, E> {
    type Output = u64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) -> u64 {
        let Self { row, blocks, range, limit, out } = self;
        let low = s.splat_f32s(E::key_at_least(range.low));
        let end = s.splat_f32s(E::key_at_least(range.end));
        let (zero, one) = (s.splat_f32s(0.0), s.splat_u32s(1));
        let mut above = 0;
        for (b, (block, &top)) in row.chunks(BLOCK).zip(blocks).enumerate() {
            if top < range.low {
                continue;
            }
            let start = b * BLOCK;
            let (groups, tail) = block.as_chunks::<LANES>();
            let mut ends = s.splat_u32s(0);
            for (g, group) in groups.iter().enumerate() {
                let keys = E::keys(group);
                let mut hits = zero;
                for &key in S::as_simd_f32s(&keys).0 {
                    let beyond = s.greater_than_or_equal_f32s(key, end);
                    ends = s.select_u32s(beyond, s.add_u32s(ends, one), ends);
                    let reaches = s.greater_than_or_equal_f32s(key, low);
                    let hit = s.select_f32s(reaches, s.splat_f32s(1.0), hits);
                    hits = s.select_f32s(beyond, hits, hit);
                }
                if s.reduce_max_f32s(hits) > 0.0 {
                    append(start + g * LANES, group, range, out);
                }
            }
            let mut lanes = [0u32; LANES];
            S::as_mut_simd_u32s(&mut lanes).0[0] = ends;
            above += u64::from(lanes.iter().sum::<u32>());
            above += append(start + groups.len() * LANES, tail, range, out) as u64;
            if out.len() > limit {
                break;
            }
        }
        above
    }
}

/// Appends the tokens of a scanned row with logits in `range`, by ascending id; gives the number of tokens above the range.
/// `blocks` are the block maxima.
#[inline]
pub(crate) fn collect_between<E: Element>(
    level: Level,
    row: &[E],
    blocks: &[f32],
    range: Between,
    out: &mut Vec<Candidate>,
) -> u64 {
    level.run(Pass { row, blocks, range, limit: usize::MAX, out })
}

/// Replaces `out` by the tokens from `low` on, by ascending id; `false` if there are more than `limit`, as soon as that shows.
#[inline]
pub(crate) fn collect_few<E: Element>(
    level: Level,
    row: &[E],
    blocks: &[f32],
    low: f32,
    limit: usize,
    out: &mut Vec<Candidate>,
) -> bool {
    out.clear();
    level.run(Pass { row, blocks, range: Between::from(low), limit, out });
    out.len() <= limit
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
