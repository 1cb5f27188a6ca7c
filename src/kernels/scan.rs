//! Maximum, first-index argmax, block maxima and the not-finite check, all in one pass over a row.

use super::blocks_of;
use crate::element::{Element, LANES, high_halves};
use crate::error::Error;
use crate::level::Level;
use core::slice;
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
    /// The first block that holds it; without block maxima, one that is before it by less than [`TOGETHER`].
    pub block: usize,
}

/// Blocks that share a maximum where nobody asks for that of each.
const TOGETHER: usize = 8;

struct Pass<'a, E> {
    row: &'a [E],
    /// Takes the maximum of each block, if it is as long as there are blocks; empty otherwise.
    blocks: &'a mut [f32],
}

/// The 16-bit values that are looked at in one step.
const HALVES: usize = 2 * LANES;

/// What shows whether a fault was met.
struct Faults {
    /// Of f32 logits: sums, which NaN and +inf leave at NaN or +inf. (Very large numbers may, too.)
    sums: [[f32; LANES]; 2],
    /// Of 16-bit logits: the largest bits as signed integers, from those of +inf on if there was a positive fault,
    highest: [i16; HALVES],
    /// and as unsigned ones, beyond those of -inf if there was a negative NaN.
    beyond: [u16; HALVES],
}

impl Faults {
    #[inline(always)]
    fn none() -> Self {
        Self { sums: [[0.0; LANES]; 2], highest: [0; HALVES], beyond: [0; HALVES] }
    }

    /// Whether it is certain that there was none.
    #[inline(always)]
    fn are_none<E: Element>(&self) -> bool {
        // One comparison at the end: compilers for wasm can't select a vector of them.
        match E::HALF_INFINITY {
            None => self.sums.as_flattened().iter().sum::<f32>() <= f32::MAX,
            Some(infinity) => {
                let highest = self.highest.iter().fold(i16::MIN, |a, &b| a.max(b));
                let beyond = self.beyond.iter().fold(0, |a, &b| a.max(b));
                highest < infinity.cast_signed() && beyond <= infinity | 0x8000
            }
        }
    }
}

/// Takes the keys of a block into the largest so far, each lane for itself.
#[inline(always)]
fn take<E: Element, S: Simd>(
    s: S,
    block: &[E; BLOCK],
    tops: &mut [f32; LANES],
    faults: &mut Faults,
) {
    if E::HALF_INFINITY.is_none() {
        return take_floats(s, block, tops, &mut faults.sums);
    }
    let best = high_halves(best_halves(s, E::half_bits(block), faults));
    for (top, &best) in S::as_mut_simd_f32s(tops).0.iter_mut().zip(S::as_simd_f32s(&best).0) {
        *top = s.max_f32s(best, *top);
    }
}

#[inline(always)]
fn take_floats<E: Element, S: Simd>(
    s: S,
    block: &[E; BLOCK],
    tops: &mut [f32; LANES],
    sums: &mut [[f32; LANES]; 2],
) {
    let groups: &[[E; LANES]] = block.as_chunks().0;
    for pair in groups.as_chunks::<2>().0 {
        for (group, sums) in pair.iter().zip(&mut *sums) {
            let keys = E::keys(group);
            let tops = S::as_mut_simd_f32s(tops).0.iter_mut();
            let accs = tops.zip(S::as_mut_simd_f32s(sums).0);
            for ((top, sum), &key) in accs.zip(S::as_simd_f32s(&keys).0) {
                // What comes out of a NaN depends on the instruction set; but then nobody looks.
                *top = s.max_f32s(key, *top);
                *sum = s.add_f32s(*sum, key);
            }
        }
    }
}

/// The bits of the largest of some 16-bit values, one of each lane. Bits of positive numbers ascend as signed integers do.
/// Those of negative ones descend, so that the largest of nothing but these is the smallest integer.
#[inline(always)]
fn best_halves<S: Simd>(s: S, bits: &[u16], faults: &mut Faults) -> [u16; LANES] {
    let (mut highest, mut lowest) = ([i16::MIN; HALVES], [i16::MAX; HALVES]);
    for bits in bits.as_chunks::<HALVES>().0 {
        let signed: &[i16; HALVES] = bytemuck::cast_ref(bits);
        let values = S::as_simd_i16s(signed).0.iter().zip(S::as_simd_u16s(bits).0);
        let ends = S::as_mut_simd_i16s(&mut highest).0.iter_mut();
        let ends = ends.zip(S::as_mut_simd_i16s(&mut lowest).0);
        let accs = ends.zip(S::as_mut_simd_u16s(&mut faults.beyond).0);
        for (((highest, lowest), beyond), (&signed, &bits)) in accs.zip(values) {
            *highest = s.max_i16s(*highest, signed);
            *lowest = s.min_i16s(*lowest, signed);
            *beyond = s.max_u16s(*beyond, bits);
        }
    }
    let all = S::as_mut_simd_i16s(&mut faults.highest).0.iter_mut();
    for (all, &highest) in all.zip(S::as_simd_i16s(&highest).0) {
        *all = s.max_i16s(*all, highest);
    }
    let (highest, lowest) = (highest.as_chunks::<LANES>().0, lowest.as_chunks::<LANES>().0);
    let mut best = [0; LANES];
    for (i, best) in best.iter_mut().enumerate() {
        let most = highest[0][i].max(highest[1][i]);
        let least = lowest[0][i].min(lowest[1][i]);
        *best = if most < 0 { least } else { most }.cast_unsigned();
    }
    best
}

/// The largest key of some blocks.
#[inline(always)]
fn largest<E: Element, S: Simd>(s: S, blocks: &[[E; BLOCK]], faults: &mut Faults) -> f32 {
    let mut tops = [E::KEY_MIN; LANES];
    for block in blocks {
        take(s, block, &mut tops, faults);
    }
    let (vectors, _) = S::as_simd_f32s(&tops);
    let mut top = vectors[0];
    for &v in &vectors[1..] {
        top = s.max_f32s(v, top);
    }
    s.reduce_max_f32s(top)
}

/// The largest key so far and the first block that holds it, or the first of some.
struct Best {
    key: f32,
    block: usize,
}

impl Best {
    #[inline(always)]
    fn note(&mut self, block: usize, key: f32) {
        if key > self.key {
            *self = Self { key, block };
        }
    }
}

impl<E: Element> WithSimd for Pass<'_, E> {
    type Output = Scan;

    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) -> Scan {
        let Self { row, blocks } = self;
        let mut faults = Faults::none();
        let mut best = Best { key: E::KEY_MIN, block: 0 };
        let (full, last) = blocks_of(row);
        if blocks.is_empty() {
            for (i, some) in full.chunks(TOGETHER).enumerate() {
                best.note(i * TOGETHER, largest(s, some, &mut faults));
            }
        } else {
            for (i, (block, slot)) in full.iter().zip(&mut *blocks).enumerate() {
                let key = largest(s, slice::from_ref(block), &mut faults);
                *slot = E::from_key(key);
                best.note(i, key);
            }
        }
        if !row.len().is_multiple_of(BLOCK) {
            let key = largest(s, &[last], &mut faults);
            if let Some(slot) = blocks.get_mut(full.len()) {
                *slot = E::from_key(key);
            }
            best.note(full.len(), key);
        }
        Scan { max: E::from_key(best.key), block: best.block, clean: faults.are_none::<E>() }
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

/// The first index from `block` on whose logit equals `max`.
#[inline]
pub(crate) fn first_equal<E: Element>(row: &[E], block: usize, max: f32) -> usize {
    let (start, key) = (block * BLOCK, E::key_at_least(max));
    let rest = row.get(start..).unwrap_or(&[]);
    let has = |group: &[E; LANES]| E::keys(group).iter().fold(false, |has, &k| has | (k == key));
    let groups: &[[E; LANES]] = rest.as_chunks().0;
    let before = groups.iter().take_while(|group| !has(group)).count() * LANES;
    let equal = |v: &E| v.to_f32() == max;
    start + before + rest[before..].iter().position(equal).unwrap_or(0)
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
