//! Which ids a list holds, how often, and what they held.

use crate::error::Error;

/// Reused memory: how often each id of a history occurs, and what a row held before. One is enough for any number of rows, used
/// one after the other.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// By id; all 0 between calls.
    counts: Vec<u32>,
    /// The distinct ids, in the order of their first occurrence.
    ids: Vec<u32>,
    /// The ids of a list of pairs.
    pub(super) touched: Vec<u32>,
    /// Logits that a list is about to change.
    pub(super) values: Vec<f32>,
    /// A row as it was.
    pub(super) before: Vec<f32>,
}

impl Tally {
    /// No memory yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts a history, calls `f` with the distinct ids and their counts, and forgets it again.
    pub(super) fn over<T>(
        &mut self,
        history: &[u32],
        vocab: usize,
        f: impl FnOnce(&[u32], &[u32]) -> Result<T, Error>,
    ) -> Result<T, Error> {
        check_ids(history, vocab)?;
        if self.counts.len() < vocab {
            self.counts.resize(vocab, 0);
        }
        self.ids.clear();
        for &id in history {
            let count = &mut self.counts[id as usize];
            if *count == 0 {
                self.ids.push(id);
            }
            *count = count.saturating_add(1);
        }
        let result = f(&self.ids, &self.counts);
        for &id in &self.ids {
            self.counts[id as usize] = 0;
        }
        result
    }
}

/// Every id lies in the row.
pub(super) fn check_ids(ids: &[u32], vocab: usize) -> Result<(), Error> {
    match ids.iter().find(|&&id| id as usize >= vocab) {
        Some(&id) => Err(Error::TokenId { id, len: vocab }),
        None => Ok(()),
    }
}
