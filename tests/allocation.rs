//! Nothing is allocated once everything is warm.
//!
//! One test only: the count is of the whole process.
#![allow(unsafe_code)] // a global allocator can't be had without

#[path = "support/sampling.rs"]
mod sampling;
#[path = "support/mod.rs"]
mod support;

use half::f16;
use sampling::*;
use sortless::{Batch, Error, Level, Pick, Report, Rows, Sampler, SamplingParams, Scratch};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use support::*;

struct Counting;

static COUNT: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator, unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::SeqCst);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::SeqCst);
        // SAFETY: as above.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations, and reallocations, while `f` runs.
fn allocations(f: impl FnOnce()) -> usize {
    let before = COUNT.load(Ordering::SeqCst);
    f();
    COUNT.load(Ordering::SeqCst) - before
}

fn samplers(level: Level) -> Vec<Sampler> {
    let plain = SamplingParams::new();
    let mut sets = vec![
        at(0.0),
        at(0.7),
        plain.with_top_k(40),
        plain.with_top_k(2000),
        plain.with_top_p(0.3),
        plain.with_top_p(0.99),
        plain.with_min_p(0.05),
        plain.with_min_p(1e-6),
        plain.with_epsilon(3e-4),
        plain.with_typical_p(0.9),
        plain.with_top_k(50).with_top_p(0.9).with_min_p(0.02).with_typical_p(0.95),
    ];
    let mut random = Random::new(12);
    sets.extend((0..20).map(|_| any_params(&mut random, 6000)));
    sets.iter().map(|params| sampler(params, level)).collect()
}

const DRAWS: [f64; 3] = [0.0, 0.6, LAST];

/// A single row, light and full, all samplers and shapes.
fn single_rows<E: Make>(level: Level, vocab: usize) {
    let (samplers, shapes) = (samplers(level), shapes::<E>(vocab, 4));
    for start in STARTS {
        let (mut scratch, mut report) = (Scratch::new(), Report::default());
        scratch.start_at(start);
        let mut all = || {
            for (_, row) in &shapes {
                for sampler in &samplers {
                    for u in DRAWS {
                        let pick = sampler.sample(row, u, &mut scratch).unwrap();
                        sampler.report(row, u, 20, &mut scratch, &mut report).unwrap();
                        assert_eq!(pick.token, report.chosen.token);
                    }
                }
            }
        };
        all();
        let count = allocations(&mut all);
        assert_eq!(count, 0, "{level}, {} x {vocab}, {start:?}", E::NAME);
    }
}

fn serial_batch(level: Level) {
    let shapes = shapes::<f16>(5000, 4);
    let mut slices: Vec<&[f16]> = shapes.iter().map(|(_, row)| &row[..]).collect();
    let draws = vec![0.7; slices.len()];
    let mut picks: Vec<Result<Pick, Error>> = vec![Err(Error::NoAllowedToken); slices.len()];
    let mut all_picks: Option<Vec<Pick>> = None;
    let mut reports = vec![Ok(Report::default()); slices.len()];
    let mut batch = Batch::serial();
    let samplers = samplers(level);
    let mut all = || {
        for sampler in &samplers {
            let sampler = std::slice::from_ref(sampler);
            let rows = Rows::slices(&slices);
            batch.sample_into(&rows, sampler, &draws, &mut picks).unwrap();
            batch.report_into(&rows, sampler, &draws, 8, &mut reports).unwrap();
            let first = picks[0].clone().unwrap();
            let all_picks = all_picks.get_or_insert_with(|| vec![first; slices.len()]);
            batch.sample_all(&rows, sampler, &draws, all_picks).unwrap();
        }
    };
    all();
    assert_eq!(allocations(&mut all), 0, "{level}");
    // A bad row in it allocates nothing either.
    let bad = vec![f16::NAN; 5000];
    slices[3] = &bad;
    let rows = Rows::slices(&slices);
    let count = allocations(|| {
        batch.sample_into(&rows, &samplers[1..2], &draws, &mut picks).unwrap();
        assert!(picks[3].is_err() && picks[4].is_ok());
    });
    assert_eq!(count, 0);
}

/// Rayon's own queues grow now and then; rows cost nothing.
#[cfg(feature = "rayon")]
fn parallel_batch() {
    const CALLS: usize = 1000;
    let shapes: Vec<_> = (0..4).flat_map(|seed| shapes::<f16>(2048, seed)).collect();
    let slices: Vec<&[f16]> = shapes.iter().map(|(_, row)| &row[..]).collect();
    let sampler = [sampler(&at(0.8).with_top_p(0.95), Level::best())];
    let draws = vec![0.7; slices.len()];
    let mut picks: Vec<Result<Pick, Error>> = vec![Err(Error::NoAllowedToken); slices.len()];
    for threads in [2, 4] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let mut batch = Batch::new();
        // Warm, for whatever thread takes whatever row: the first few calls may meet a new thread.
        let count = pool.install(|| {
            let rows = Rows::slices(&slices);
            let mut call = || batch.sample_into(&rows, &sampler, &draws, &mut picks).unwrap();
            (0..300).for_each(|_| call());
            allocations(|| (0..CALLS).for_each(|_| call()))
        });
        say(format_args!("{threads} threads: {count} allocations in {CALLS} calls"));
        assert!(count <= CALLS / 20, "{count}");
    }
}

#[test]
fn nothing_is_allocated_once_warm() {
    // The counter counts.
    assert_eq!(allocations(|| drop(std::hint::black_box(vec![0u8; 100]))), 1);
    for level in levels() {
        for vocab in [1, 100, 1024, 6000] {
            single_rows::<f32>(level, vocab);
            single_rows::<f16>(level, vocab);
        }
        serial_batch(level);
    }
    #[cfg(feature = "rayon")]
    parallel_batch();
}
