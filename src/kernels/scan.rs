//! Maximum, first-index argmax, block maxima and the not-finite check, all in one pass over a row.

use super::padded;
use crate::element::{Element, LANES};
use crate::error::Error;
use crate::level::Level;
use pulp::{Simd, WithSimd};

/// Tokens in a block. One maximum a block is what later passes use to skip most of a peaked row.
pub(crate) const BLOCK: usize = 128;

/// What one pass over a row finds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scan {
    /// The largest logit; NaN never counts. -inf for an empty row.
    pub max: f32,
    /// The first block that holds it.
    pub block: usize,
    /// Whether no logit is NaN or +inf.
    pub clean: bool,
}

struct Pass<'a, E> {
    row: &'a [E],
    /// Takes the maximum of each block, if it is as long as there are blocks; empty otherwise.
    blocks: &'a mut [f32],
}

/// The largest key of a block, as a vector of one for each lane, and whether a key is out of range.
#[inline(always)]
fn block<E: Element, S: Simd>(s: S, groups: &[[E; LANES]], faults: &mut S::f32s) -> f32 {
    let mut acc = [E::KEY_MIN; LANES];
    let mut bad = s.less_than_f32s(s.splat_f32s(0.0), s.splat_f32s(0.0));
    for group in groups {
        let keys = E::keys(group);
        for (acc, &key) in S::as_mut_simd_f32s(&mut acc).0.iter_mut().zip(S::as_simd_f32s(&keys).0)
        {
            // Compare and select: NaN never wins, whatever the instruction set's own max does.
            *acc = s.select_f32s(s.greater_than_f32s(key, *acc), key, *acc);
            let fine = s.less_than_or_equal_f32s(key, s.splat_f32s(E::KEY_MAX));
            bad = s.or_m32s(bad, s.not_m32s(fine));
            if E::KEYS_BELOW {
                bad = s.or_m32s(bad, s.less_than_f32s(key, s.splat_f32s(E::KEY_MIN)));
            }
        }
    }
    *faults = s.select_f32s(bad, s.splat_f32s(1.0), *faults);
    let (vectors, _) = S::as_simd_f32s(&acc);
    let mut top = vectors[0];
    for &v in &vectors[1..] {
        top = s.select_f32s(s.greater_than_f32s(v, top), v, top);
    }
    // No NaN is left in here, and which zero comes out doesn't matter.
    s.reduce_max_f32s(top)
}

impl<E: Element> WithSimd for Pass<'_, E> {
    type Output = Scan;

    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) -> Scan {
        let mut best = E::KEY_MIN;
        let mut best_block = 0;
        let mut faults = s.splat_f32s(0.0);
        let (full, rest) = self.row.as_chunks::<BLOCK>();
        let mut stores = self.blocks.iter_mut();
        let mut last = [[E::MASKED; LANES]; BLOCK / LANES];
        for (group, part) in last.iter_mut().zip(rest.chunks(LANES)) {
            *group = padded(part);
        }
        let last = if rest.is_empty() { None } else { Some(&last[..]) };
        let blocks = full.iter().map(
            #[inline(always)]
            |chunk| chunk.as_chunks::<LANES>().0,
        );
        for (i, groups) in blocks.chain(last).enumerate() {
            let top = block(s, groups, &mut faults);
            if let Some(store) = stores.next() {
                *store = E::from_key(top);
            }
            if top > best {
                best = top;
                best_block = i;
            }
        }
        Scan { max: E::from_key(best), block: best_block, clean: s.reduce_max_f32s(faults) == 0.0 }
    }
}

/// Scans a row; `blocks` takes the block maxima, or is empty.
#[inline]
pub(crate) fn scan<E: Element>(level: Level, row: &[E], blocks: &mut [f32]) -> Scan {
    level.run(Pass { row, blocks })
}

/// The error for the first logit that is NaN or +inf, if there is one.
#[cold]
pub(crate) fn first_fault<E: Element>(row: &[E]) -> Option<Error> {
    row.iter()
        .enumerate()
        .find_map(|(index, v)| v.fault().map(|value| Error::NotFinite { index, value }))
}

/// The first index in `block` whose logit equals `max`.
#[inline]
pub(crate) fn first_equal<E: Element>(row: &[E], block: usize, max: f32) -> usize {
    let start = block * BLOCK;
    let block = row.get(start..).unwrap_or(&[]);
    start + block.iter().position(|v| v.to_f32() == max).unwrap_or(0)
}

/// The largest logit of a row. A maximum of zero is `+0.0`; an empty or fully masked row gives `-inf`.
///
/// # Errors
/// [`Error::NotFinite`] with the lowest index that holds NaN or +inf; the check costs no second pass.
///
/// ```
/// use sortless::{kernels::max, Error, Level, NotFinite};
/// assert_eq!(max(Level::best(), &[1.0f32, 3.0, 2.0]), Ok(3.0));
/// let bad = max(Level::best(), &[1.0f32, f32::NAN, f32::INFINITY]);
/// assert_eq!(bad, Err(Error::NotFinite { index: 1, value: NotFinite::NaN }));
/// ```
pub fn max<E: Element>(level: Level, row: &[E]) -> Result<f32, Error> {
    let found = scan(level, row, &mut []);
    match first_fault(if found.clean { &[] } else { row }) {
        Some(error) => Err(error),
        None => Ok(found.max + 0.0),
    }
}

/// The index of the largest logit: what a scan with strict `>` from the first element finds.
///
/// The first of equals wins and `-0.0` equals `+0.0`. A later NaN never wins, a NaN in first place stays; `None` for an
/// empty row. Infinities are ordinary values here.
///
/// ```
/// use sortless::{kernels::argmax_first, Level};
/// assert_eq!(argmax_first(Level::best(), &[0.0f32, 1.0, 1.0]), Some(1));
/// assert_eq!(argmax_first(Level::best(), &[f32::NAN, 1.0]), Some(0));
/// ```
pub fn argmax_first<E: Element>(level: Level, row: &[E]) -> Option<usize> {
    let first = row.first()?.to_f32();
    if first.is_nan() {
        return Some(0);
    }
    let found = scan(level, row, &mut []);
    Some(if found.clean { first_equal(row, found.block, found.max) } else { plain_argmax(row) })
}

/// The scan itself, for the rare row with a NaN or +inf, whose keys say too little.
#[cold]
fn plain_argmax<E: Element>(row: &[E]) -> usize {
    let mut best = 0;
    for (i, v) in row.iter().enumerate() {
        if v.to_f32() > row[best].to_f32() {
            best = i;
        }
    }
    best
}
