//! Batches of 1, 8 and 64 rows on one thread and on all: `batch/name/shape/vocab/type/rows/threads`.
//!
//! Before each call, outside of the timed span, the rows are copied into one matrix.

mod common;
#[path = "common/suite.rs"]
mod suite;

use common::cases::{cases, draw};
use criterion::{BenchmarkId, Criterion};
use half::{bf16, f16};
use sortless::{Batch, Error, Pick, Rows, Sampler, reference};
use std::hint::black_box;
use std::time::{Duration, Instant};
use suite::{Named, VOCABS, criterion, rows_of, usual_shape};

const SIZES: [usize; 3] = [1, 8, 64];
const NAMES: [&str; 3] = ["greedy", "top-k 50", "top-p 0.9 at T 0.7"];

fn batches<E: Named>(c: &mut Criterion, vocab: usize) {
    let shape = usual_shape(vocab);
    let mut group = c.benchmark_group("batch");
    for case in cases().into_iter().filter(|c| NAMES.contains(&c.name)) {
        let sampler = Sampler::new(case.params).expect("the cases are in range");
        let sampler = [sampler.with_level(common::level())];
        for size in SIZES {
            for (threads, mut batch) in [("one", Batch::serial()), ("all", Batch::new())] {
                let name = format!("{}/{shape}/{vocab}/{}/{size}/{threads}", case.name, E::NAME);
                let mut state = None;
                let mut picks = vec![Err(Error::NoAllowedToken); size];
                group.bench_function(BenchmarkId::from_parameter(name), |b| {
                    let (source, matrix, draws) = state.get_or_insert_with(|| {
                        let Some(rows) = rows_of::<E>(shape, vocab) else {
                            panic!("{shape} rows need the repository's test data");
                        };
                        let source: Vec<E> =
                            (0..size).flat_map(|i| rows[i % rows.len()].iter().copied()).collect();
                        let draws: Vec<f64> = (0..size).map(|i| draw(i, 0)).collect();
                        let rows = Rows::matrix(&source, size, vocab, vocab).expect("it fits");
                        batch.sample_into(&rows, &sampler, &draws, &mut picks).expect("it fits");
                        check(&rows, &sampler[0], &draws, &picks);
                        (source.clone(), source, draws)
                    });
                    b.iter_custom(|n| {
                        let mut total = Duration::ZERO;
                        for _ in 0..n {
                            matrix.copy_from_slice(source);
                            let data = black_box(&matrix[..]);
                            let start = Instant::now();
                            let rows = Rows::matrix(data, size, vocab, vocab).expect("it fits");
                            let done = batch.sample_into(&rows, &sampler, draws, &mut picks);
                            total += start.elapsed();
                            black_box((done, &picks)).0.expect("it fits");
                        }
                        total
                    });
                });
            }
        }
    }
    group.finish();
}

/// Every 21st row against the reference, so that large batches don't take long.
fn check<E: Named>(
    rows: &Rows<'_, E>,
    sampler: &Sampler,
    draws: &[f64],
    picks: &[Result<Pick, Error>],
) {
    for i in (0..rows.len()).step_by(21) {
        let row = rows.get(i).expect("inside");
        assert_eq!(picks[i], reference::sample(row, sampler.params(), draws[i]), "row {i}");
    }
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
