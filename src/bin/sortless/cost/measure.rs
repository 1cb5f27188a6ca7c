//! Measurements that take turns, so that whatever slows a machine down slows all of them.

use super::Subject;
use super::contestants::{Call, sampler, sort_top_p};
use crate::args::{Cost, Dtype, Sampler, name_of};
use crate::failure::Failure;
use crate::threads::pool;
use clap::ValueEnum;
use half::{bf16, f16};
use rayon::prelude::*;
use serde::Serialize;
use sortless::{Element, Level, floors, kernels};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Rows that each of several threads works on within a measurement.
const ROWS_A_THREAD: usize = 8;
/// The sort is so slow that it gets one turn in as many.
const SORT_TURNS: usize = 3;

/// Measured together: one table.
#[derive(Clone, Debug)]
pub struct Section {
    pub vocab: usize,
    pub shape: String,
    pub dtype: String,
    pub threads: usize,
    /// Microseconds a row.
    pub floor_read: f64,
    pub floor_exp: f64,
    pub cells: Vec<Cell>,
}

/// A line of the table.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    pub vocab: usize,
    pub shape: String,
    pub dtype: String,
    pub threads: usize,
    pub sampler: String,
    pub us_per_row: f64,
    pub ns_per_token: f64,
    pub x_floor_read: f64,
    pub x_floor_exp: f64,
    pub x_sort: f64,
}

pub fn measure(
    args: &Cost,
    level: Level,
    subject: &Subject,
    rows: &[Vec<f32>],
    dtype: Dtype,
    threads: usize,
) -> Result<Section, Failure> {
    fn convert<E>(rows: &[Vec<f32>], to: impl Fn(f32) -> E) -> Vec<Vec<E>> {
        rows.iter().map(|row| row.iter().map(|&l| to(l)).collect()).collect()
    }
    match dtype {
        Dtype::F32 => with_rows(args, level, subject, rows, rows, dtype, threads),
        Dtype::F16 => {
            let typed = convert(rows, f16::from_f32);
            with_rows(args, level, subject, rows, &typed, dtype, threads)
        }
        Dtype::Bf16 => {
            let typed = convert(rows, bf16::from_f32);
            with_rows(args, level, subject, rows, &typed, dtype, threads)
        }
    }
}

/// One that takes turns: warms a row up, or works on it.
struct Contestant<'a> {
    touch: Box<dyn Fn(usize) + Sync + 'a>,
    call: Box<dyn Fn(usize, f64) + Sync + 'a>,
    times: Vec<f64>,
}

fn contestant<'a, E: Element>(level: Level, rows: &'a [Vec<E>], call: Call<E>) -> Contestant<'a> {
    let row = move |i: usize| &rows[i % rows.len()][..];
    Contestant {
        // An engine has just written the row, so it lies in a cache as far as it fits.
        touch: Box::new(move |i| drop(black_box(kernels::max(level, black_box(row(i)))))),
        call: Box::new(move |i, u| {
            black_box(call(black_box(row(i)), u));
        }),
        times: Vec::new(),
    }
}

#[allow(clippy::too_many_arguments)]
fn with_rows<E: Element>(
    args: &Cost,
    level: Level,
    subject: &Subject,
    singles: &[Vec<f32>],
    rows: &[Vec<E>],
    dtype: Dtype,
    threads: usize,
) -> Result<Section, Failure> {
    let names = match &args.samplers[..] {
        [] => Sampler::value_variants(),
        names => names,
    };
    // The floors and the sort come first.
    let read: Call<f32> = Box::new(move |row, _| floors::read(level, row).to_bits().into());
    let exp: Call<f32> = Box::new(move |row, _| floors::exp(level, row, 0.7).to_bits());
    let mut contestants = vec![
        contestant(level, singles, read),
        contestant(level, singles, exp),
        contestant(level, singles, Box::new(sort_top_p)),
    ];
    let mut places = Vec::new();
    for &name in names {
        places.push(match sampler(name, level)? {
            Some(call) => {
                contestants.push(contestant(level, rows, call));
                contestants.len() - 1
            }
            None => 2,
        });
    }
    take_turns(&mut contestants, rows.len(), args.rounds, threads)?;

    let times: Vec<f64> = contestants.into_iter().map(|c| median(c.times)).collect();
    let (vocab, shape, dtype) = (subject.vocab, &subject.shape, name_of(dtype));
    let cell = |(&name, place): (&Sampler, usize)| Cell {
        vocab,
        shape: shape.clone(),
        dtype: dtype.clone(),
        threads,
        sampler: name_of(name),
        us_per_row: times[place],
        ns_per_token: times[place] * 1e3 / vocab as f64,
        x_floor_read: times[place] / times[0],
        x_floor_exp: times[place] / times[1],
        x_sort: times[2] / times[place],
    };
    let cells = names.iter().zip(places).map(cell).collect();
    let (floor_read, floor_exp) = (times[0], times[1]);
    Ok(Section { vocab, shape: shape.clone(), dtype, threads, floor_read, floor_exp, cells })
}

/// Measures `rounds` times over all rows, after a round that doesn't count.
fn take_turns(
    contestants: &mut [Contestant<'_>],
    rows: usize,
    rounds: usize,
    threads: usize,
) -> Result<(), Failure> {
    let pool = if threads > 1 { Some(pool(Some(threads))?) } else { None };
    // Several threads take many rows at a time, one takes each alone.
    let batch = if threads > 1 { threads * ROWS_A_THREAD } else { 1 };
    let count = contestants.len();
    for round in 0..=rounds {
        for first in (0..rows).step_by(batch.min(rows)) {
            // Another one begins in every turn, and so comes after another one.
            for turn in 0..count {
                let place = (turn + round + first) % count;
                let is_sort = place == 2;
                if is_sort && round > 1 && !(round - 1).is_multiple_of(SORT_TURNS) {
                    continue;
                }
                let one = &contestants[place];
                let work = |i: usize| (one.call)(first + i, draw(round, first + i));
                let time = match &pool {
                    None => {
                        (one.touch)(first);
                        clock(|| work(0))
                    }
                    Some(pool) => pool.install(|| {
                        each(batch, |i| (one.touch)(first + i));
                        clock(|| each(batch, work))
                    }),
                };
                if round > 0 {
                    contestants[place].times.push(time.as_secs_f64() * 1e6 / batch as f64);
                }
            }
        }
    }
    Ok(())
}

fn each(count: usize, work: impl Fn(usize) + Sync + Send) {
    (0..count).into_par_iter().with_max_len(1).for_each(work);
}

fn clock(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// A sequence that fills [0, 1) evenly.
fn draw(round: usize, row: usize) -> f64 {
    ((row * 7919 + round) as f64 * 0.618_033_988_749_894_9).fract()
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}
