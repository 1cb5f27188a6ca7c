//! The two measuring protocols: hot, as an engine uses a sampler, and cold.

use super::rows::ROWS;
use half::{bf16, f16};
use sortless::Element;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Bytes that the cold protocol rotates through: more than any cache holds.
const COLD_BYTES: usize = 256 << 20;

/// An element type that rows can be rounded to.
pub trait Make: Element {
    /// The nearest value.
    fn make(logit: f32) -> Self;
}

impl Make for f32 {
    fn make(logit: f32) -> Self {
        logit
    }
}

impl Make for f16 {
    fn make(logit: f32) -> Self {
        f16::from_f32(logit)
    }
}

impl Make for bf16 {
    fn make(logit: f32) -> Self {
        bf16::from_f32(logit)
    }
}

/// Rounds rows to an element type.
pub fn make<E: Make>(rows: &[Vec<f32>]) -> Vec<Vec<E>> {
    let round = |row: &Vec<f32>| row.iter().map(|&l| E::make(l)).collect();
    rows.iter().map(round).collect()
}

/// Where a call's row comes from.
pub enum Feed<E> {
    /// Before each call, outside of the timed span, the row is copied into one buffer, as an engine does.
    Hot { rows: Vec<Vec<E>>, buffer: Vec<E> },
    /// Rows lie in a pool that no cache holds, and each call takes the next.
    Cold { pool: Vec<E>, vocab: usize, next: usize },
}

impl<E: Element> Feed<E> {
    /// The hot protocol.
    pub fn hot(rows: Vec<Vec<E>>) -> Self {
        let buffer = rows[0].clone();
        Self::Hot { rows, buffer }
    }

    /// The cold protocol.
    pub fn cold(rows: &[Vec<E>]) -> Self {
        let vocab = rows[0].len();
        let count = (COLD_BYTES / size_of_val(&rows[0][..])).max(rows.len());
        let count = count.next_multiple_of(rows.len());
        Self::Cold {
            pool: (0..count).flat_map(|i| rows[i % rows.len()].iter().copied()).collect(),
            vocab,
            next: 0,
        }
    }

    /// The row of a call; hot rows are those of the index, cold ones are next in turn.
    pub fn row(&mut self, index: usize) -> &[E] {
        match self {
            Self::Hot { rows, buffer } => {
                buffer.copy_from_slice(&rows[index % rows.len()]);
                buffer
            }
            Self::Cold { pool, vocab, next } => {
                let row = &pool[*next..][..*vocab];
                *next = (*next + *vocab) % pool.len();
                row
            }
        }
    }
}

/// Times one call on the row of an index.
pub fn timed<E: Element, T>(
    feed: &mut Feed<E>,
    index: usize,
    call: impl FnOnce(&[E]) -> T,
) -> Duration {
    let row = black_box(feed.row(index));
    let start = Instant::now();
    let result = call(row);
    let time = start.elapsed();
    black_box(result);
    time
}

/// One that takes turns with others: times its call on the row of an index, for the n-th time.
pub type Contestant<'a, C> = Box<dyn FnMut(&mut C, usize, usize) -> Duration + 'a>;

/// What a contestant took, in microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// The median of all calls.
    pub median: f64,
    /// The mean over the rows of each row's median.
    pub mean: f64,
    /// The largest of the rows' medians.
    pub worst: f64,
}

/// Lets contestants take turns, row by row, `rounds` times over all rows, after a round that doesn't count. Another one
/// begins in each round: whoever does finds the row farther away from the caches. `context` holds what they share.
pub fn alternate<C>(
    context: &mut C,
    contestants: &mut [Contestant<'_, C>],
    rounds: usize,
) -> Vec<Times> {
    let mut times = vec![vec![Vec::new(); contestants.len()]; ROWS];
    for round in 0..=rounds {
        for (row, times) in times.iter_mut().enumerate() {
            let first = round % contestants.len();
            for turn in (first..contestants.len()).chain(0..first) {
                let time = contestants[turn](context, row, round).as_secs_f64() * 1e6;
                if round > 0 {
                    times[turn].push(time);
                }
            }
        }
    }
    let summary = |turn: usize| {
        let rows: Vec<Vec<f64>> = times.iter().map(|row| row[turn].clone()).collect();
        let medians: Vec<f64> = rows.iter().map(|t| median(t.clone())).collect();
        Times {
            median: median(rows.into_iter().flatten().collect()),
            mean: medians.iter().sum::<f64>() / medians.len() as f64,
            worst: medians.iter().copied().fold(0.0, f64::max),
        }
    };
    (0..contestants.len()).map(summary).collect()
}

/// The median of some numbers, 0 of none.
pub fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_unstable_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(0.0)
}
