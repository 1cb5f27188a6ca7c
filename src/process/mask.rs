//! What may be drawn at all.

use super::MASKED;
use super::tally::{Tally, check_ids};
use crate::batch::check_length as same_length;
use crate::error::Error;
use crate::row::check_length;

/// Masks every token that is not `allowed`, which is as long as the row.
///
/// # Errors
/// [`Error::RowLength`], [`Error::Shape`], [`Error::NoAllowedToken`].
///
/// ```
/// let mut row = [1.0f32, 2.0, 3.0];
/// sortless::process::mask(&mut row, &[true, true, false])?;
/// assert_eq!(row, [1.0, 2.0, f32::NEG_INFINITY]);
/// # Ok::<(), sortless::Error>(())
/// ```
pub fn mask(row: &mut [f32], allowed: &[bool]) -> Result<(), Error> {
    check_length(row.len())?;
    same_length("length of the mask", row.len(), allowed.len())?;
    if !row.iter().zip(allowed).any(|(&l, &allowed)| allowed && l != MASKED) {
        return Err(Error::NoAllowedToken);
    }
    for (logit, &allowed) in row.iter_mut().zip(allowed) {
        *logit = if allowed { *logit } else { MASKED };
    }
    Ok(())
}

/// Masks every token whose bit is 0 in a packed mask: bit `id % 32` of word `id / 32`. A shorter mask forbids the rest; bits
/// beyond the row don't matter.
///
/// # Errors
/// [`Error::RowLength`], [`Error::NoAllowedToken`].
///
/// ```
/// let mut row = [1.0f32; 40];
/// sortless::process::packed_mask(&mut row, &[1 << 3])?;
/// assert_eq!(row.iter().position(|&l| l == 1.0), Some(3));
/// # Ok::<(), sortless::Error>(())
/// ```
pub fn packed_mask(row: &mut [f32], words: &[u32]) -> Result<(), Error> {
    check_length(row.len())?;
    let bit = |word: u32, i: usize| word >> i & 1 == 1;
    let mut allowed = row.chunks(32).zip(words).filter(|(_, word)| **word != 0);
    let some = allowed.any(|(logits, &word)| {
        let mut logits = logits.iter().enumerate();
        logits.any(|(i, &l)| bit(word, i) && l != MASKED)
    });
    if !some {
        return Err(Error::NoAllowedToken);
    }
    let words = words.iter().copied().chain(core::iter::repeat(0));
    for (logits, word) in row.chunks_mut(32).zip(words) {
        match word {
            0 => logits.fill(MASKED),
            u32::MAX => {}
            _ => {
                for (i, logit) in logits.iter_mut().enumerate() {
                    *logit = if bit(word, i) { *logit } else { MASKED };
                }
            }
        }
    }
    Ok(())
}

/// Masks every token that is not in the list. Repeated ids are one.
///
/// # Errors
/// [`Error::RowLength`], [`Error::TokenId`], [`Error::NoAllowedToken`].
pub fn allow(row: &mut [f32], ids: &[u32], tally: &mut Tally) -> Result<(), Error> {
    check_length(row.len())?;
    check_ids(ids, row.len())?;
    let values = &mut tally.values;
    values.clear();
    values.extend(ids.iter().map(|&id| row[id as usize]));
    if values.iter().all(|&l| l == MASKED) {
        return Err(Error::NoAllowedToken);
    }
    // No look-up per token: mask all, then put the allowed ones back.
    row.fill(MASKED);
    for (&id, &value) in ids.iter().zip(&*values) {
        row[id as usize] = value;
    }
    Ok(())
}

/// Masks every token in the list. Repeated ids are one.
///
/// # Errors
/// [`Error::RowLength`], [`Error::TokenId`], [`Error::NoAllowedToken`].
pub fn block(row: &mut [f32], ids: &[u32], tally: &mut Tally) -> Result<(), Error> {
    check_length(row.len())?;
    check_ids(ids, row.len())?;
    let values = &mut tally.values;
    values.clear();
    for &id in ids {
        values.push(core::mem::replace(&mut row[id as usize], MASKED));
    }
    // Ends at the first token that is left, unless most of the row is masked.
    if row.iter().all(|&l| l == MASKED) {
        // Backwards: of a repeated id the first time holds the logit.
        for (&id, &value) in ids.iter().zip(&*values).rev() {
            row[id as usize] = value;
        }
        return Err(Error::NoAllowedToken);
    }
    Ok(())
}
