//! Every kernel, and the floors: `floor` or `kernel`, then `name/shape/vocab/type/protocol`.
//!
//! `cargo bench --bench kernels -- exp_mass/llm/151936` runs those whose name contains that.

mod common;
#[path = "common/suite.rs"]
mod suite;

use criterion::Criterion;
use half::{bf16, f16};
use sortless::kernels::{
    Scale, argmax_first, collect, exp_mass, exp_weights, exponent_histogram, max,
};
use sortless::{floors, reference};
use suite::{Named, VOCABS, both, criterion, usual_shape};

const TEMPERATURE: f32 = 0.7;

/// Logits that are collected are at most this far below the maximum: some tens on ordinary rows.
const DEPTH: f32 = 6.0;

fn scale_of<E: Named>(row: &[E]) -> Scale {
    let max = reference::max(row).expect("the rows are finite");
    Scale::new(max, TEMPERATURE).expect("the rows are not masked")
}

/// About the maximum of every ordinary row, so that no pass for it is timed. The kernels' time doesn't depend on it.
fn usual() -> Scale {
    Scale::new(18.0, TEMPERATURE).expect("in range")
}

fn floor(c: &mut Criterion, vocab: usize) {
    let level = common::level();
    let at = (usual_shape(vocab), vocab);
    let largest = |row: &[f32]| row.iter().copied().fold(f32::MIN, f32::max);
    both::<f32, _>(
        c,
        ["floor", "read"],
        at,
        |row, _| assert_eq!(floors::read(level, row), largest(row)),
        |row, _, _| floors::read(level, row),
    );
    both::<f32, _>(
        c,
        ["floor", "exp"],
        at,
        |row, _| {
            let mass = reference::total_mass(row, largest(row), TEMPERATURE) as f64;
            let ratio = floors::exp(level, row, TEMPERATURE) * sortless::kernels::ONE as f64 / mass;
            assert!((ratio - 1.0).abs() < 5e-6, "off by {ratio}");
        },
        |row, _, _| floors::exp(level, row, TEMPERATURE),
    );
}

fn kernels<E: Named>(c: &mut Criterion, vocab: usize) {
    let level = common::level();
    let at = (usual_shape(vocab), vocab);
    both::<E, _>(
        c,
        ["kernel", "max"],
        at,
        |row, _| assert_eq!(max(level, row), reference::max(row)),
        |row, _, _| max(level, row),
    );
    both::<E, _>(
        c,
        ["kernel", "argmax_first"],
        at,
        |row, _| assert_eq!(argmax_first(level, row), reference::argmax(row)),
        |row, _, _| argmax_first(level, row),
    );
    both::<E, _>(
        c,
        ["kernel", "exp_mass"],
        at,
        |row, _| {
            let scale = scale_of(row);
            let want = reference::total_mass(row, scale.max(), TEMPERATURE);
            assert_eq!(exp_mass(level, row, scale), Ok(want));
        },
        |row, _, _| exp_mass(level, row, usual()),
    );
    let mut weights = vec![0.0; vocab];
    both::<E, _>(
        c,
        ["kernel", "exp_weights"],
        at,
        |row, _| {
            let scale = scale_of(row);
            let mut weights = vec![0.0; row.len()];
            let total = exp_weights(level, row, scale, &mut weights);
            assert_eq!(total, Ok(reference::total_mass(row, scale.max(), TEMPERATURE)));
            assert_eq!(weights, reference::weights(row, scale.max(), TEMPERATURE));
        },
        |row, _, _| exp_weights(level, row, usual(), &mut weights),
    );
    both::<E, _>(
        c,
        ["kernel", "exponent_histogram"],
        at,
        |row, _| {
            let scale = scale_of(row);
            let found = exponent_histogram(level, row, scale).expect("short enough");
            let want = reference::exponent_histogram(row, scale.max(), TEMPERATURE);
            assert_eq!((*found.counts(), *found.masses()), want);
        },
        |row, _, _| exponent_histogram(level, row, usual()),
    );
    let mut found = Vec::new();
    both::<E, _>(
        c,
        ["kernel", "collect"],
        at,
        |row, _| {
            let low = scale_of(row).max() - DEPTH;
            let mut found = Vec::new();
            collect(level, row, low, &mut found).expect("the rows are finite");
            let found: Vec<_> = found.iter().map(|t| (t.id(), t.logit())).collect();
            assert_eq!(found, reference::at_least(row, low));
        },
        |row, _, _| collect(level, row, usual().max() - DEPTH, &mut found),
    );
}

fn main() {
    let mut c = criterion();
    for vocab in VOCABS {
        floor(&mut c, vocab);
        kernels::<f32>(&mut c, vocab);
        kernels::<f16>(&mut c, vocab);
        kernels::<bf16>(&mut c, vocab);
    }
    c.final_summary();
}
