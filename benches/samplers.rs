//! Every sampler: `sampler/name/shape/vocab/type/protocol`. The floors are in `kernels`.
//!
//! `cargo bench --bench samplers -- 'top-p 0.9.*/llm/151936/f32/hot'` runs those that match.

mod common;
#[path = "common/suite.rs"]
mod suite;

use common::cases::{Runner, cases, draw};
use common::rows::{REAL_VOCAB, SHAPES};
use criterion::Criterion;
use half::{bf16, f16};
use suite::{Named, VOCABS, both, criterion, usual_shape};

/// Where the shapes that are not ordinary are run.
const SHAPES_VOCAB: usize = 151_936;

fn samplers<E: Named>(c: &mut Criterion, shape: &str, vocab: usize) {
    for case in cases() {
        let mut checked = Runner::new(case, common::level());
        let mut runner = Runner::new(case, common::level());
        both::<E, _>(
            c,
            ["sampler", case.name],
            (shape, vocab),
            |row, i| checked.check(row, draw(i, 0)),
            |row, i, n| runner.call(row, draw(i, n)),
        );
    }
}

fn main() {
    let mut c = criterion();
    for vocab in VOCABS {
        samplers::<f32>(&mut c, usual_shape(vocab), vocab);
        samplers::<f16>(&mut c, usual_shape(vocab), vocab);
        samplers::<bf16>(&mut c, usual_shape(vocab), vocab);
    }
    let others = SHAPES.iter().filter(|s| **s != usual_shape(SHAPES_VOCAB));
    for shape in others.filter(|s| **s != usual_shape(REAL_VOCAB)) {
        samplers::<f32>(&mut c, shape, SHAPES_VOCAB);
    }
    c.final_summary();
}
