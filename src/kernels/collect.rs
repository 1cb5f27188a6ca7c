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

/// Which logits to collect: `low <= logit <= high`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Between {
    pub low: f32,
    pub high: f32,
}

struct Pass<'a, E> {
    row: &'a [E],
    /// The maximum of each block, to skip blocks by.
    blocks: &'a [f32],
    range: Between,
    out: &'a mut Vec<Candidate>,
}

/// Whether a logit of the group reaches the threshold.
#[inline(always)]
fn reaches<E: Element, S: Simd>(s: S, group: &[E; LANES], low_key: S::f32s) -> bool {
    let keys = E::keys(group);
    let mut hits = s.splat_f32s(0.0);
    for &key in S::as_simd_f32s(&keys).0 {
        hits = s.select_f32s(s.greater_than_or_equal_f32s(key, low_key), s.splat_f32s(1.0), hits);
    }
    s.reduce_max_f32s(hits) > 0.0
}

/// Appends those of a group's tokens that are in the range.
#[inline(always)]
fn append<E: Element>(start: usize, group: &[E], range: Between, out: &mut Vec<Candidate>) {
    let mut n = out.len();
    out.resize(n + LANES, Candidate(0));
    for (i, v) in group.iter().enumerate() {
        let logit = v.to_f32();
        out[n] = Candidate::new((start + i) as u32, logit);
        n += usize::from(logit >= range.low && logit <= range.high);
    }
    out.truncate(n);
}

impl<E: Element> WithSimd for Pass<'_, E> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) {
        let Self { row, blocks, range, out } = self;
        let low_key = s.splat_f32s(E::key_at_least(range.low));
        for (b, (block, &top)) in row.chunks(BLOCK).zip(blocks).enumerate() {
            if top < range.low {
                continue;
            }
            let start = b * BLOCK;
            let (groups, tail) = block.as_chunks::<LANES>();
            for (g, group) in groups.iter().enumerate() {
                if reaches(s, group, low_key) {
                    append(start + g * LANES, group, range, out);
                }
            }
            append(start + groups.len() * LANES, tail, range, out);
        }
    }
}

/// Appends the tokens of a scanned row with logits in `range`, by ascending id. `blocks` are the block maxima.
#[inline]
pub(crate) fn collect_between<E: Element>(
    level: Level,
    row: &[E],
    blocks: &[f32],
    range: Between,
    out: &mut Vec<Candidate>,
) {
    level.run(Pass { row, blocks, range, out });
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
    if !scan(level, row, &mut blocks).clean {
        if let Some(error) = first_fault(row) {
            return Err(error);
        }
    }
    out.clear();
    collect_between(
        level,
        row,
        &blocks,
        Between { low: threshold.max(f32::MIN), high: f32::MAX },
        out,
    );
    Ok(())
}
