//! The tokens of a row whose logits reach a threshold.

use super::scan::{BLOCK, scan};
use super::{blocks_of, first_fault, lanes_of};
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

/// Tokens that have a bit each in a word.
const WORD: usize = 32;

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
        let Self { row, blocks, ranges, limit, outs } = self;
        let (full, last) = blocks_of(row);
        let least = ranges.iter().fold(f32::INFINITY, |least, range| least.min(range.low));
        let least = s.splat_f32s(least);
        // An end that no logit reaches needs no comparisons.
        let bounded = N > 1 || ranges.iter().any(|range| range.end < f32::INFINITY);
        let keys = ranges.map(
            #[inline(always)]
            |range| [range.low, range.end].map(|l| s.splat_f32s(E::key_at_least(l))),
        );
        let bits = token_bits();
        let mut lists = outs.map(
            #[inline(always)]
            |out| List { found: [Candidate(0); 2 * BLOCK], count: 0, out },
        );
        let mut reaching = [0; STRETCH];
        'row: for (stretch, tops) in blocks.chunks(STRETCH).enumerate() {
            let mut count = 0;
            let (stretches, rest) = tops.as_chunks();
            let mut last_tops = [f32::NEG_INFINITY; WORD];
            last_tops[..rest.len()].copy_from_slice(rest);
            for (i, tops) in stretches.iter().chain([&last_tops]).enumerate() {
                let mut word = any::<S>(inside::<false, _, _, 1>(s, tops, &[[least; 2]], &bits));
                while word != 0 {
                    let b = stretch * STRETCH + i * WORD + word.trailing_zeros() as usize;
                    reaching[count % STRETCH] = b;
                    count += 1;
                    word &= word - 1;
                }
            }
            for &b in &reaching[..count.min(STRETCH)] {
                let block = full.get(b).unwrap_or(&last);
                let words = if bounded {
                    words::<true, _, _, _>(s, block, &keys, &bits)
                } else {
                    words::<false, _, _, _>(s, block, &keys, &bits)
                };
                take(b, block, words, &ranges, &mut lists);
                if lists.iter().any(|list| list.out.len() + list.count > limit) {
                    break 'row;
                }
            }
        }
        for list in &mut lists {
            list.flush();
        }
    }
}

/// A word's bits, one for each token, in groups of lanes.
#[inline(always)]
fn token_bits() -> [[u32; LANES]; WORD / LANES] {
    let mut bits = [[0; LANES]; WORD / LANES];
    for (i, bit) in bits.as_flattened_mut().iter_mut().enumerate() {
        *bit = 1 << i;
    }
    bits
}

/// The bits of the tokens that are in any of some ranges of keys, which only have ends where they are `BOUNDED`: each lane has
/// those of its own tokens.
#[inline(always)]
fn inside<const BOUNDED: bool, E: Element, S: Simd, const N: usize>(
    s: S,
    tokens: &[E; WORD],
    ranges: &[[S::f32s; 2]; N],
    bits: &[[u32; LANES]; WORD / LANES],
) -> S::u32s {
    let zero = s.splat_u32s(0);
    let mut inside = zero;
    for (group, bits) in tokens.as_chunks().0.iter().zip(bits) {
        let keys = E::keys(group);
        for (&key, &bits) in S::as_simd_f32s(&keys).0.iter().zip(S::as_simd_u32s(bits).0) {
            let mut some = is_in::<BOUNDED, S>(s, key, ranges[0]);
            for &range in &ranges[1..] {
                some = s.or_m32s(some, is_in::<BOUNDED, S>(s, key, range));
            }
            inside = s.or_u32s(inside, s.select_u32s(some, bits, zero));
        }
    }
    inside
}

#[inline(always)]
fn is_in<const BOUNDED: bool, S: Simd>(s: S, key: S::f32s, [low, end]: [S::f32s; 2]) -> S::m32s {
    let reaches = s.greater_than_or_equal_f32s(key, low);
    if BOUNDED { s.and_m32s(reaches, s.less_than_f32s(key, end)) } else { reaches }
}

/// [`inside`] for a block.
#[inline(always)]
fn words<const BOUNDED: bool, E: Element, S: Simd, const N: usize>(
    s: S,
    block: &[E; BLOCK],
    ranges: &[[S::f32s; 2]; N],
    bits: &[[u32; LANES]; WORD / LANES],
) -> [u32; BLOCK / WORD] {
    let mut words = [0; BLOCK / WORD];
    for (word, tokens) in words.iter_mut().zip(block.as_chunks().0) {
        *word = any::<S>(inside::<BOUNDED, _, _, _>(s, tokens, ranges, bits));
    }
    words
}

/// Where the tokens of a range go, some at a time.
struct List<'a> {
    found: [Candidate; 2 * BLOCK],
    count: usize,
    out: &'a mut Vec<Candidate>,
}

impl List<'_> {
    #[inline(always)]
    fn flush(&mut self) {
        self.out.extend_from_slice(&self.found[..self.count.min(2 * BLOCK)]);
        self.count = 0;
    }
}

/// Takes the tokens of a block whose bits are set: each to the lists of the ranges that it is in.
#[inline(always)]
fn take<E: Element, const N: usize>(
    b: usize,
    block: &[E; BLOCK],
    words: [u32; BLOCK / WORD],
    ranges: &[Between; N],
    lists: &mut [List<'_>; N],
) {
    let mut counts = [0; N];
    for (count, list) in counts.iter_mut().zip(&*lists) {
        *count = list.count;
    }
    for (part, &[first, second]) in words.as_chunks().0.iter().enumerate() {
        let mut bits = u64::from(first) | u64::from(second) << 32;
        while bits != 0 {
            let i = part * 2 * WORD + bits.trailing_zeros() as usize;
            bits &= bits - 1;
            let logit = block[i].to_f32();
            let token = Candidate::new((b * BLOCK + i) as u32, logit);
            for ((list, count), range) in lists.iter_mut().zip(&mut counts).zip(ranges) {
                list.found[*count % (2 * BLOCK)] = token;
                // Of one range, the bits say it all.
                let is_in = N == 1 || (range.low <= logit) & (logit < range.end);
                *count += usize::from(is_in);
            }
        }
    }
    for (list, count) in lists.iter_mut().zip(counts) {
        list.count = count;
        if count > BLOCK {
            list.flush();
        }
    }
}

/// The bits that any lane has.
#[inline(always)]
fn any<S: Simd>(word: S::u32s) -> u32 {
    let [a, b, c, d]: [u128; 4] = bytemuck::cast(lanes_of::<S>(word));
    let both = a | b | c | d;
    let both = both as u64 | (both >> 64) as u64;
    both as u32 | (both >> 32) as u32
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
