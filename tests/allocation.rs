//! Nothing is allocated once everything is warm.
//!
//! Counted are the allocations of the thread that asks, since the test harness allocates in its own whenever it likes; where
//! rows are spread over threads, those of the whole process, which is why there is one test only.
#![allow(unsafe_code)] // a global allocator can't be had without

#[path = "support/sampling.rs"]
mod sampling;
#[path = "support/mod.rs"]
mod support;

use half::f16;
use sampling::*;
use sortless::mirostat::{Config, Session, SessionBatch, Step, Version};
use sortless::{
    Batch, Error, Level, Pick, PreparedRow, Report, Rows, Sampler, SamplingParams, Scratch,
};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use support::*;

struct Counting;

/// Of all threads.
static COUNT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Of this thread.
    static OWN: Cell<usize> = const { Cell::new(0) };
}

fn count() {
    COUNT.fetch_add(1, Ordering::SeqCst);
    OWN.set(OWN.get() + 1);
}

// SAFETY: every call goes to the system's allocator, unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations, and reallocations, of this thread while `f` runs.
fn allocations(f: impl FnOnce()) -> usize {
    let before = OWN.get();
    f();
    OWN.get() - before
}

/// Those of all threads.
#[cfg(feature = "rayon")]
fn allocations_anywhere(f: impl FnOnce()) -> usize {
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
            allocations_anywhere(|| (0..CALLS).for_each(|_| call()))
        });
        say(format_args!("{threads} threads: {count} allocations in {CALLS} calls"));
        assert!(count <= CALLS / 20, "{count}");
    }
}

/// Sessions that keep few tokens, many and all.
fn sessions(level: Level) -> Vec<Session> {
    let kinds = [Version::V1, Version::V2].into_iter();
    let kinds = kinds.flat_map(|version| [0.5, 3.0, 15.0].map(|tau| (version, tau)));
    let new = |(version, tau)| Session::new(Config::new(tau).unwrap(), version).with_level(level);
    kinds.map(new).collect()
}

/// A few steps of each session over each row, from the session's beginning, drawn here and elsewhere.
fn steps<R: ?Sized>(
    sessions: &[Session],
    rows: &[&R],
    scratch: &mut Scratch,
    sample: impl Fn(&mut Session, &R, f64, &mut Scratch) -> Result<Step, Error>,
    observe: impl Fn(&mut Session, &R, u32, &mut Scratch) -> Result<Step, Error>,
    preview: impl Fn(&Session, &R, &mut Scratch) -> u32,
) {
    for session in sessions {
        let mut session = session.fork();
        for row in rows {
            for u in DRAWS {
                let (kept, mut other) = (preview(&session, row, scratch), session.fork());
                let step = sample(&mut session, row, u, scratch).unwrap();
                assert_eq!(observe(&mut other, row, step.token, scratch), Ok(step));
                assert_eq!(step.kept, kept);
            }
        }
    }
}

/// Mirostat over one kind of row: steps and previews allocate nothing, a set of candidates its own four lists.
fn mirostat<R: ?Sized>(
    what: &str,
    level: Level,
    rows: &[&R],
    sample: impl Fn(&mut Session, &R, f64, &mut Scratch) -> Result<Step, Error>,
    observe: impl Fn(&mut Session, &R, u32, &mut Scratch) -> Result<Step, Error>,
    preview: impl Fn(&Session, &R, &mut Scratch) -> u32,
    candidates: impl Fn(&Session, &R, &mut Scratch) -> usize,
) {
    let sessions = sessions(level);
    for start in [STARTS[0], STARTS[3]] {
        let mut scratch = Scratch::new();
        scratch.start_at(start);
        let mut all = || steps(&sessions, rows, &mut scratch, &sample, &observe, &preview);
        all();
        assert_eq!(allocations(&mut all), 0, "{level}, {what}, {start:?}");
        for (session, row) in sessions.iter().zip(rows.iter().cycle()) {
            let mut kept = 0;
            let mut look = || kept = candidates(session, row, &mut scratch);
            look();
            assert_eq!(allocations(look), 4, "{level}, {what}, {start:?}");
            assert_eq!(kept as u32, preview(session, row, &mut scratch));
        }
    }
}

fn mirostat_logits<E: Make>(level: Level, vocab: usize) {
    let shapes = shapes::<E>(vocab, 4);
    let rows: Vec<&[E]> = shapes.iter().map(|(_, row)| &row[..]).collect();
    mirostat(
        &format!("{} x {vocab}", E::NAME),
        level,
        &rows,
        |session, row, u, scratch| session.sample(row, u, scratch),
        |session, row, token, scratch| session.observe(row, token, scratch),
        |session, row, scratch| session.preview(row, scratch).unwrap().kept,
        |session, row, scratch| session.candidates(row, scratch).unwrap().len(),
    );
}

fn mirostat_weights(vocab: usize) {
    let level = Level::best();
    let mut shapes = shapes::<f32>(vocab, 4);
    // Its largest logits have no finite weight.
    shapes.retain(|(name, _)| *name != "huge range");
    let weights: Vec<Vec<f32>> =
        shapes.iter().map(|(_, row)| row.iter().map(|l| l.exp()).collect()).collect();
    let rows: Vec<&[f32]> = weights.iter().map(|row| &row[..]).collect();
    mirostat(
        &format!("weights x {vocab}"),
        level,
        &rows,
        |session, row, u, scratch| session.sample_weights(row, u, scratch),
        |session, row, token, scratch| session.observe_weights(row, token, scratch),
        |session, row, scratch| session.preview_weights(row, scratch).unwrap().kept,
        |session, row, scratch| session.candidates_weights(row, scratch).unwrap().len(),
    );
    let ranked = shapes.iter().map(|(_, row)| PreparedRow::from_logits(row).unwrap());
    let ranked: Vec<PreparedRow> =
        ranked.chain(weights.iter().map(|row| PreparedRow::from_weights(row).unwrap())).collect();
    let rows: Vec<&PreparedRow> = ranked.iter().collect();
    mirostat(
        &format!("prepared x {vocab}"),
        level,
        &rows,
        |session, row, u, scratch| session.sample_prepared(row, u, scratch),
        |session, row, token, scratch| session.observe_prepared(row, token, scratch),
        |session, row, scratch| session.preview_prepared(row, scratch).unwrap().kept,
        |session, row, scratch| session.candidates_prepared(row, scratch).unwrap().len(),
    );
}

fn mirostat_batch(level: Level) {
    let shapes = shapes::<f16>(5000, 4);
    let slices: Vec<&[f16]> = shapes.iter().map(|(_, row)| &row[..]).collect();
    let (n, rows) = (slices.len(), Rows::slices(&slices));
    let draws = vec![0.7; n];
    let mut batch = SessionBatch::serial();
    let mut results = vec![Ok(Step::default()); n];
    let mut steps = vec![Step::default(); n];
    for session in sessions(level) {
        let mut sessions = vec![session; n];
        let mut all = || {
            sessions.iter_mut().for_each(Session::reset);
            for _ in 0..3 {
                batch.sample_into(&rows, &mut sessions, &draws, &mut results).unwrap();
                assert!(results.iter().all(Result::is_ok));
                batch.sample_all(&rows, &mut sessions, &draws, &mut steps).unwrap();
            }
        };
        all();
        assert_eq!(allocations(&mut all), 0, "{level}");
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
        for vocab in [100, 6000] {
            mirostat_logits::<f32>(level, vocab);
            mirostat_logits::<f16>(level, vocab);
        }
        mirostat_batch(level);
    }
    // These have no levels.
    for vocab in [100, 6000] {
        mirostat_weights(vocab);
    }
    #[cfg(feature = "rayon")]
    parallel_batch();
}
