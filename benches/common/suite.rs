//! The criterion side: short runs, rows made once, and both protocols. It needs `common` beside it.

// Not every benchmark has both protocols.
#![allow(dead_code)]

use crate::common::measure::{Feed, Make, make, timed};
use crate::common::rows::{REAL_VOCAB, ROWS, rows};
use criterion::{BenchmarkId, Criterion};
use half::{bf16, f16};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

/// The vocabularies of the suite. `REAL_VOCAB` has real rows, the others rows like those of a language model.
pub const VOCABS: [usize; 5] = [32_000, REAL_VOCAB, 128_256, 151_936, 250_000];

/// An element type with a name.
pub trait Named: Make {
    /// As in the benchmarks' names.
    const NAME: &'static str;
}

impl Named for f32 {
    const NAME: &'static str = "f32";
}

impl Named for f16 {
    const NAME: &'static str = "f16";
}

impl Named for bf16 {
    const NAME: &'static str = "bf16";
}

/// The shape that a vocabulary's ordinary rows have.
pub fn usual_shape(vocab: usize) -> &'static str {
    if vocab == REAL_VOCAB { "real" } else { "llm" }
}

/// The suite's settings: half a second a benchmark, so that all of it can be run; the command line can ask for more.
pub fn criterion() -> Criterion {
    Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(400))
        .without_plots()
        .configure_from_args()
}

/// The rows of a shape in an element type; the last ones made are kept. `None` where the test data is missing.
pub fn rows_of<E: Named>(shape: &str, vocab: usize) -> Option<Vec<Vec<E>>> {
    type Last = Option<(String, usize, Rc<Vec<Vec<f32>>>)>;
    thread_local!(static LAST: RefCell<Last> = const { RefCell::new(None) });
    let made = LAST.with_borrow_mut(|last| {
        if let Some((s, v, rows)) = last
            && (s.as_str(), *v) == (shape, vocab)
        {
            return Some(rows.clone());
        }
        let rows = Rc::new(rows(shape, vocab)?);
        *last = Some((shape.into(), vocab, rows.clone()));
        Some(rows)
    })?;
    Some(make(&made))
}

/// Benchmarks a call in both protocols as `group/name/shape/vocab/type/protocol`. `check` gets some rows first, each with
/// its number; `call` gets a row, its number and a count of calls. Nothing is made before a benchmark is chosen.
pub fn both<E: Named, T>(
    c: &mut Criterion,
    [group, name]: [&str; 2],
    (shape, vocab): (&str, usize),
    mut check: impl FnMut(&[E], usize),
    mut call: impl FnMut(&[E], usize, usize) -> T,
) {
    for cold in [false, true] {
        let protocol = if cold { "cold" } else { "hot" };
        let id = format!("{name}/{shape}/{vocab}/{}/{protocol}", E::NAME);
        let mut group = c.benchmark_group(group);
        let mut feed = None;
        let mut calls = 0;
        group.bench_function(BenchmarkId::from_parameter(id), |b| {
            if feed.is_none() {
                let Some(rows) = rows_of::<E>(shape, vocab) else {
                    panic!("{shape} rows need the repository's test data");
                };
                for (i, row) in rows.iter().enumerate().step_by(11) {
                    check(row, i);
                }
                feed = Some(if cold { Feed::cold(&rows) } else { Feed::hot(rows) });
            }
            let Some(feed) = &mut feed else { return };
            b.iter_custom(|n| {
                let mut total = Duration::ZERO;
                for _ in 0..n {
                    let i = calls;
                    calls += 1;
                    total += timed(feed, i, |row| call(row, i % ROWS, i));
                }
                total
            });
        });
        group.finish();
    }
}
