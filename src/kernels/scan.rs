//! Maximum, first-index argmax, block maxima and the not-finite check, all in one pass over a row.

use super::blocks_of;
use crate::element::{Element, LANES};
use crate::error::Error;
use crate::level::Level;
use pulp::{Simd, WithSimd};

/// Tokens in a block. One maximum a block is what later passes use to skip most of a peaked row.
pub(crate) const BLOCK: usize = 128;

/// What one pass over a row finds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scan {
    /// Whether it is certain that no logit is NaN or +inf. Where one is, the rest has no meaning.
    pub clean: bool,
    /// The largest logit. -inf for an empty row.
    pub max: f32,
    /// The first block that holds it.
    pub block: usize,
}

struct Pass<'a, E> {
    row: &'a [E],
    /// Takes the maximum of each block, if it is as long as there are blocks; empty otherwise.
    blocks: &'a mut [f32],
}

/// Whether a fault was met.
#[derive(Clone, Copy)]
struct Faults<S: Simd> {
    /// Stays set in the lanes whose keys so far were surely those of numbers.
    fine: S::m32s,
    /// Where faults don't add up: has its highest bit in the lanes that met a NaN.
    nan: S::u16s,
}

impl<S: Simd> Faults<S> {
    #[inline(always)]
    fn none(s: S) -> Self {
        let zero = s.splat_f32s(0.0);
        Self { fine: s.less_than_or_equal_f32s(zero, zero), nan: s.splat_u16s(0) }
    }

    /// Whether there was none, if this is the largest key of all.
    #[inline(always)]
    fn are_none<E: Element>(&self, s: S, key: f32) -> bool {
        // As many as the widest vectors have.
        let mut nan = [0u16; 2 * LANES];
        S::as_mut_simd_u16s(&mut nan).0[0] = self.nan;
        let mut any = 0;
        for lane in nan {
            any |= lane;
        }
        let fine = s.select_f32s(self.fine, s.splat_f32s(1.0), s.splat_f32s(0.0));
        s.reduce_min_f32s(fine) == 1.0 && any >> 15 == 0 && key <= E::KEY_MAX
    }
}

/// The largest key of a block.
#[inline(always)]
fn block<E: Element, S: Simd>(s: S, groups: &[[E; LANES]], faults: &mut Faults<S>) -> f32 {
    let (mut tops, mut sums) = ([E::KEY_MIN; LANES], [0.0; LANES]);
    for group in groups {
        let keys = E::keys(group);
        let tops = S::as_mut_simd_f32s(&mut tops).0.iter_mut();
        let accs = tops.zip(S::as_mut_simd_f32s(&mut sums).0);
        for ((top, sum), &key) in accs.zip(S::as_simd_f32s(&keys).0) {
            // What comes out of a NaN depends on the instruction set; but then the row isn't clean, and nobody looks.
            *top = s.max_f32s(key, *top);
            if E::FAULTS_ADD_UP {
                *sum = s.add_f32s(*sum, key);
            }
        }
    }
    if E::FAULTS_ADD_UP {
        for &sum in S::as_simd_f32s(&sums).0 {
            let number = s.less_than_or_equal_f32s(sum, s.splat_f32s(E::KEY_MAX));
            faults.fine = s.and_m32s(faults.fine, number);
        }
    } else {
        let (magnitude, bump) = (s.splat_u16s(0x7fff), s.splat_u16s(0x8000 - 0x7c01));
        for &bits in S::as_simd_u16s(E::half_bits(groups.as_flattened())).0 {
            let bumped = s.add_u16s(s.and_u16s(bits, magnitude), bump);
            faults.nan = s.or_u16s(faults.nan, bumped);
        }
    }
    let (vectors, _) = S::as_simd_f32s(&tops);
    let mut top = vectors[0];
    for &v in &vectors[1..] {
        top = s.max_f32s(v, top);
    }
    s.reduce_max_f32s(top)
}

/// The largest key so far and the first block that holds it.
struct Best {
    key: f32,
    block: usize,
}

impl Best {
    /// Takes the largest key of the next block, whose value goes to the block maxima.
    #[inline(always)]
    fn note(&mut self, block: usize, top: f32, blocks: &mut [f32], value: impl Fn(f32) -> f32) {
        if let Some(slot) = blocks.get_mut(block) {
            *slot = value(top);
        }
        if top > self.key {
            *self = Self { key: top, block };
        }
    }
}

impl<E: Element> WithSimd for Pass<'_, E> {
    type Output = Scan;

    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) -> Scan {
        let Self { row, blocks } = self;
        let mut faults = Faults::none(s);
        let mut best = Best { key: E::KEY_MIN, block: 0 };
        let (full, last) = blocks_of(row);
        for (i, chunk) in full.iter().enumerate() {
            best.note(i, block(s, chunk.as_chunks().0, &mut faults), blocks, E::from_key);
        }
        if !row.len().is_multiple_of(BLOCK) {
            let top = block(s, last.as_chunks().0, &mut faults);
            best.note(full.len(), top, blocks, E::from_key);
        }
        Scan {
            max: E::from_key(best.key),
            block: best.block,
            clean: faults.are_none::<E>(s, best.key),
        }
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
