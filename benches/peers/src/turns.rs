//! How the contestants take turns.

use crate::common::measure::{Contestant, Times, alternate};
use crate::peer::Pick;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Rows, and the one buffer that each is copied into before a call, outside of the timed span.
pub struct Rows {
    pub rows: Vec<Vec<f32>>,
    buffer: Vec<f32>,
}

impl Rows {
    pub fn new(rows: Vec<Vec<f32>>) -> Self {
        let buffer = rows[0].clone();
        Self { rows, buffer }
    }

    /// Times one call on a row. (The shared protocol has no row that may be written to.)
    pub fn timed<T>(&mut self, index: usize, call: impl FnOnce(&mut [f32]) -> T) -> Duration {
        self.buffer.copy_from_slice(&self.rows[index]);
        let row = black_box(&mut self.buffer[..]);
        let start = Instant::now();
        let result = call(row);
        let time = start.elapsed();
        black_box(result);
        time
    }
}

/// Lets contestants take turns, call by call.
pub fn turns(rows: &mut Rows, picks: Vec<Pick>, rounds: usize) -> Vec<Times> {
    let contestant = |mut pick: Pick| -> Contestant<'_, Rows> {
        Box::new(move |rows, index, n| {
            let u = crate::common::cases::draw(index, n);
            rows.timed(index, |row| pick(row, u))
        })
    };
    let mut contestants: Vec<_> = picks.into_iter().map(contestant).collect();
    alternate(rows, &mut contestants, rounds)
}
