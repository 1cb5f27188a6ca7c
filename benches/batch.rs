//! Batches of 1, 8 and 64 rows on one thread and on all: `batch/name/shape/vocab/type/rows/threads`.
//!
//! Calls follow each other at once, as in an engine that keeps decoding: a pool of threads that sleeps between calls needs
//! milliseconds to be back on all cores. Each call has new draws.

mod common;
#[path = "common/suite.rs"]
mod suite;

use common::batched::Batched;
use common::cases::{cases, draw};
use criterion::{BenchmarkId, Criterion};
use half::{bf16, f16};
use sortless::Rows;
use std::hint::black_box;
use std::time::{Duration, Instant};
use suite::{Named, VOCABS, criterion, rows_of, usual_shape};

const SIZES: [usize; 3] = [1, 8, 64];
const NAMES: [&str; 5] =
    ["greedy", "top-k 50", "top-p 0.9 at T 0.7", "mirostat v1, tau 3", "mirostat v2, tau 3"];

fn batches<E: Named>(c: &mut Criterion, vocab: usize) {
    let shape = usual_shape(vocab);
    let mut group = c.benchmark_group("batch");
    for case in cases().into_iter().filter(|c| NAMES.contains(&c.name)) {
        for size in SIZES {
            for (threads, all) in [("one", false), ("all", true)] {
                let name = format!("{}/{shape}/{vocab}/{}/{size}/{threads}", case.name, E::NAME);
                let mut state = None;
                let mut batch = Batched::new(case, common::level(), size, all);
                let mut calls = 0;
                group.bench_function(BenchmarkId::from_parameter(name), |b| {
                    let matrix = state.get_or_insert_with(|| {
                        let Some(rows) = rows_of::<E>(shape, vocab) else {
                            panic!("{shape} rows need the repository's test data");
                        };
                        let source: Vec<E> =
                            (0..size).flat_map(|i| rows[i % rows.len()].iter().copied()).collect();
                        let draws: Vec<f64> = (0..size).map(|i| draw(i, 0)).collect();
                        let rows = Rows::matrix(&source, size, vocab, vocab).expect("it fits");
                        batch.check(&rows, &draws);
                        source
                    });
                    b.iter_custom(|n| {
                        let mut total = Duration::ZERO;
                        for _ in 0..n {
                            calls += 1;
                            let draws: Vec<f64> = (0..size).map(|i| draw(i, calls)).collect();
                            let data = black_box(&matrix[..]);
                            let start = Instant::now();
                            let rows = Rows::matrix(data, size, vocab, vocab).expect("it fits");
                            batch.call(&rows, &draws);
                            total += start.elapsed();
                            black_box(&batch);
                        }
                        total
                    });
                });
            }
        }
    }
    group.finish();
}

fn main() {
    let mut c = criterion();
    for vocab in VOCABS {
        batches::<f32>(&mut c, vocab);
        batches::<f16>(&mut c, vocab);
        batches::<bf16>(&mut c, vocab);
    }
    c.final_summary();
}
