//! Many rows at once. A row's result depends on that row, its sampler and its draw alone.

use crate::element::Element;
use crate::error::Error;
use crate::pick::{Pick, Report};
use crate::sampler::{Sampler, Scratch};

/// The rows of a batch: a matrix with a row stride, or separate slices.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a, E> {
    source: Source<'a, E>,
    valid_vocab: usize,
}

#[derive(Clone, Copy, Debug)]
enum Source<'a, E> {
    Matrix { data: &'a [E], rows: usize, vocab: usize, stride: usize },
    Slices(&'a [&'a [E]]),
}

impl<'a, E: Element> Rows<'a, E> {
    /// A row-major matrix: row `i` is `data[i * stride..][..vocab]`.
    ///
    /// # Errors
    /// [`Error::Shape`] if the stride is shorter than the vocabulary, or if `data` doesn't hold the rows; sizes that
    /// overflow included.
    ///
    /// ```
    /// use sortless::Rows;
    /// let padded = [1.0f32, 2.0, 0.0, 4.0, 3.0, 0.0];
    /// let rows = Rows::matrix(&padded, 2, 2, 3)?;
    /// assert_eq!(rows.get(1), Some(&[4.0f32, 3.0][..]));
    /// # Ok::<(), sortless::Error>(())
    /// ```
    pub fn matrix(data: &'a [E], rows: usize, vocab: usize, stride: usize) -> Result<Self, Error> {
        if stride < vocab {
            return Err(Error::Shape { what: "row stride", expected: vocab, found: stride });
        }
        let needed = match rows.checked_sub(1) {
            None => 0,
            Some(before) => before.saturating_mul(stride).saturating_add(vocab),
        };
        if data.len() < needed {
            let what = "length of the matrix, at least";
            return Err(Error::Shape { what, expected: needed, found: data.len() });
        }
        Ok(Self { source: Source::Matrix { data, rows, vocab, stride }, valid_vocab: usize::MAX })
    }

    /// Rows that lie anywhere and may differ in length.
    pub fn slices(rows: &'a [&'a [E]]) -> Self {
        Self { source: Source::Slices(rows), valid_vocab: usize::MAX }
    }

    /// Only ids below `valid_vocab` may be drawn; the rest of each row is padding and not even read.
    pub fn with_valid_vocab(self, valid_vocab: usize) -> Self {
        Self { valid_vocab, ..self }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        match self.source {
            Source::Matrix { rows, .. } => rows,
            Source::Slices(rows) => rows.len(),
        }
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Row `index` without its padding; `None` beyond the last.
    pub fn get(&self, index: usize) -> Option<&'a [E]> {
        let row = match self.source {
            Source::Matrix { data, rows, vocab, stride } if index < rows => {
                data.get(index.checked_mul(stride)?..)?.get(..vocab)?
            }
            Source::Matrix { .. } => return None,
            Source::Slices(rows) => rows.get(index)?,
        };
        Some(&row[..row.len().min(self.valid_vocab)])
    }
}

/// Samples batches. Keeps one [`Scratch`] a thread, so that a warm batch allocates nothing for its rows.
///
/// With the feature `rayon` rows are spread over the rayon pool that the call is made in; the results are the same on any
/// number of threads, in any order of the rows and any split of the batch.
///
/// ```
/// use sortless::{Batch, Rows, Sampler};
/// let logits = [0.0f32, 5.0, 1.0, f32::NAN, 0.0, 0.0, 7.0, 0.0, 0.0];
/// let rows = Rows::matrix(&logits, 3, 3, 3)?;
/// let picks = Batch::new().sample(&rows, &[Sampler::greedy()], &[0.0; 3])?;
/// assert_eq!(picks[0].as_ref().unwrap().token, 1);
/// assert!(picks[1].is_err()); // its neighbours don't mind
/// assert_eq!(picks[2].as_ref().unwrap().token, 0);
/// # Ok::<(), sortless::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Batch {
    pool: Pool,
    /// What an all-or-nothing call finds before it tells.
    picks: Vec<Result<Pick, Error>>,
}

impl Batch {
    /// Spreads rows over rayon's threads, if the feature `rayon` is on.
    pub fn new() -> Self {
        Self { pool: Pool::new(true), picks: Vec::new() }
    }

    /// Stays on the calling thread.
    pub fn serial() -> Self {
        Self { pool: Pool::new(false), picks: Vec::new() }
    }

    /// Picks a token from each row. `samplers` holds one for all rows or one a row, `draws` one a row.
    ///
    /// # Errors
    /// [`Error::Shape`] if the lengths don't fit. What is wrong with a row stands in its own result.
    pub fn sample<E: Element>(
        &mut self,
        rows: &Rows<'_, E>,
        samplers: &[Sampler],
        draws: &[f64],
    ) -> Result<Vec<Result<Pick, Error>>, Error> {
        let mut picks = vec![Err(Error::NoAllowedToken); rows.len()];
        self.sample_into(rows, samplers, draws, &mut picks)?;
        Ok(picks)
    }

    /// As [`sample`](Self::sample), into the caller's memory, one result a row.
    ///
    /// # Errors
    /// [`Error::Shape`] if the lengths don't fit; `picks` is untouched then.
    pub fn sample_into<E: Element>(
        &mut self,
        rows: &Rows<'_, E>,
        samplers: &[Sampler],
        draws: &[f64],
        picks: &mut [Result<Pick, Error>],
    ) -> Result<(), Error> {
        check_lengths(rows, samplers, draws, picks.len())?;
        self.pool.each(picks, |i, scratch, pick| {
            *pick = row_of(rows, i)
                .and_then(|row| sampler_of(samplers, i).sample(row, draws[i], scratch));
        });
        Ok(())
    }

    /// All or nothing: picks a token from each row into `picks`, or changes nothing.
    ///
    /// # Errors
    /// [`Error::Shape`] if the lengths don't fit; [`Error::Row`] for the first row that fails.
    pub fn sample_all<E: Element>(
        &mut self,
        rows: &Rows<'_, E>,
        samplers: &[Sampler],
        draws: &[f64],
        picks: &mut [Pick],
    ) -> Result<(), Error> {
        check_lengths(rows, samplers, draws, picks.len())?;
        let mut found = core::mem::take(&mut self.picks);
        found.clear();
        found.resize(rows.len(), Err(Error::NoAllowedToken));
        let result = self.sample_into(rows, samplers, draws, &mut found).and_then(|()| {
            for (row, pick) in found.iter().enumerate() {
                if let Err(error) = pick {
                    return Err(error.clone().in_row(row));
                }
            }
            for (pick, found) in picks.iter_mut().zip(&found) {
                if let Ok(found) = found {
                    *pick = *found;
                }
            }
            Ok(())
        });
        self.picks = found;
        result
    }

    /// Picks a token from each row and reports everything about it, as [`Sampler::report`] does. A report that is already
    /// there lends its memory.
    ///
    /// # Errors
    /// [`Error::Shape`] if the lengths don't fit. What is wrong with a row stands in its own result.
    pub fn report_into<E: Element>(
        &mut self,
        rows: &Rows<'_, E>,
        samplers: &[Sampler],
        draws: &[f64],
        alternatives: usize,
        reports: &mut [Result<Report, Error>],
    ) -> Result<(), Error> {
        check_lengths(rows, samplers, draws, reports.len())?;
        self.pool.each(reports, |i, scratch, result| {
            let mut report = match result {
                Ok(report) => core::mem::take(report),
                Err(_) => Report::default(),
            };
            *result = row_of(rows, i)
                .and_then(|row| {
                    let sampler = sampler_of(samplers, i);
                    sampler.report(row, draws[i], alternatives, scratch, &mut report)
                })
                .map(|()| report);
        });
        Ok(())
    }
}

pub(crate) fn row_of<'a, E: Element>(rows: &Rows<'a, E>, index: usize) -> Result<&'a [E], Error> {
    rows.get(index).ok_or(Error::RowLength { len: 0 })
}

fn sampler_of(samplers: &[Sampler], index: usize) -> &Sampler {
    if samplers.len() == 1 { &samplers[0] } else { &samplers[index] }
}

fn check_lengths<E: Element>(
    rows: &Rows<'_, E>,
    samplers: &[Sampler],
    draws: &[f64],
    out: usize,
) -> Result<(), Error> {
    let check = |what, found| check_length(what, rows.len(), found);
    if samplers.len() != 1 {
        check("number of samplers (1 or one a row)", samplers.len())?;
    }
    check("number of draws", draws.len())?;
    check("number of results", out)
}

/// One of two lengths that must agree.
pub(crate) fn check_length(what: &'static str, expected: usize, found: usize) -> Result<(), Error> {
    if found == expected { Ok(()) } else { Err(Error::Shape { what, expected, found }) }
}

/// Scratch for each thread, and whether there is more than one.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    serial: Scratch,
    #[cfg(feature = "rayon")]
    threads: Option<Vec<std::sync::Mutex<Scratch>>>,
}

impl Pool {
    #[cfg_attr(not(feature = "rayon"), allow(unused_variables))]
    pub fn new(parallel: bool) -> Self {
        Self {
            serial: Scratch::new(),
            #[cfg(feature = "rayon")]
            threads: parallel.then(Vec::new),
        }
    }

    /// Calls `f` once for each item, with its index and some thread's scratch.
    pub fn each<T: Send>(
        &mut self,
        items: &mut [T],
        f: impl Fn(usize, &mut Scratch, &mut T) + Sync,
    ) {
        // Units take no memory.
        let mut units = vec![(); items.len()];
        self.each_pair(items, &mut units, |i, scratch, item, ()| f(i, scratch, item));
    }

    /// Calls `f` once for each pair of items of two lists of one length.
    pub fn each_pair<T: Send, U: Send>(
        &mut self,
        left: &mut [T],
        right: &mut [U],
        f: impl Fn(usize, &mut Scratch, &mut T, &mut U) + Sync,
    ) {
        #[cfg(feature = "rayon")]
        if let Some(threads) = &mut self.threads
            && left.len() > 1
            && rayon::current_num_threads() > 1
        {
            use rayon::prelude::*;
            while threads.len() < rayon::current_num_threads() {
                threads.push(Default::default());
            }
            let threads = &*threads;
            let pairs = left.par_iter_mut().zip(right.par_iter_mut());
            pairs.enumerate().for_each(|(i, (left, right))| {
                // One mutex a thread: never contended, and nothing below can panic or wait while it is held.
                let own = rayon::current_thread_index().unwrap_or(0) % threads.len();
                let mut scratch =
                    threads[own].lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                f(i, &mut scratch, left, right);
            });
            return;
        }
        for (i, (left, right)) in left.iter_mut().zip(right).enumerate() {
            f(i, &mut self.serial, left, right);
        }
    }
}
