//! The samplers, the kernels and the batch against the reference on random hard cases: see `src/property`. The fuzz
//! targets in `fuzz/` call the same functions.
//!
//! `PROPTEST_CASES` sets the number of cases of each test. What once failed stays in `proptest-regressions/` and is tried
//! first.

// proptest is not built for wasm.
#![cfg(not(target_family = "wasm"))]

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{FileFailurePersistence, TestRunner};
use sortless::{Paths, property};

/// A runner with this many cases, unless the environment says otherwise, and its own file of regressions.
fn runner(cases: u32, regressions: &'static str) -> TestRunner {
    let mut config = ProptestConfig::default();
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = cases;
    }
    // Emulated and foreign machines are slow, and find what they find in fewer cases.
    if cfg!(not(target_arch = "x86_64")) {
        config.cases = config.cases.min(100);
    }
    config.failure_persistence = Some(Box::new(FileFailurePersistence::Direct(regressions)));
    config.max_shrink_iters = 20_000;
    TestRunner::new(config)
}

/// Short strings make plain cases, long ones rows of many pieces.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![vec(any::<u8>(), 0..40), vec(any::<u8>(), 0..120), vec(any::<u8>(), 100..600)]
}

fn run(cases: u32, regressions: &'static str, check: fn(&[u8]) -> Result<(), String>) {
    let outcome = runner(cases, regressions)
        .run(&bytes(), |bytes| check(&bytes).map_err(TestCaseError::fail));
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

#[test]
fn kernels() {
    run(6000, "proptest-regressions/kernels.txt", property::kernels);
}

#[test]
fn samplers() {
    run(3000, "proptest-regressions/samplers.txt", property::samplers);
}

#[test]
fn batches() {
    run(1000, "proptest-regressions/batch.txt", property::batch);
}

#[test]
fn mirostat() {
    run(1500, "proptest-regressions/mirostat.txt", property::mirostat);
}

#[test]
fn process() {
    run(3000, "proptest-regressions/process.txt", property::process);
}

#[cfg(feature = "json")]
#[test]
fn json() {
    run(1500, "proptest-regressions/json.txt", |bytes| {
        // Text by itself is rarely a request: half of the cases are built.
        property::json(bytes)?;
        property::json(&[&[0], bytes].concat())
    });
}

/// Draws and cuts so near to a boundary that the bounds on the total mass leave them open: each path has to decide some.
#[test]
fn gaps() {
    let paths = std::cell::Cell::new(Paths::default());
    let outcome = runner(200, "proptest-regressions/gaps.txt").run(&bytes(), |bytes| {
        let found = property::gaps(&bytes).map_err(TestCaseError::fail)?;
        let mut sum = paths.get();
        sum.bounds += found.bounds;
        sum.cheap += found.cheap;
        sum.exact += found.exact;
        sum.full += found.full;
        paths.set(sum);
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
    let Paths { bounds, cheap, exact, full, .. } = paths.get();
    println!("decided by bounds {bounds}, cheap {cheap}, exact {exact}, full {full}");
    assert!([bounds, cheap, exact, full].iter().all(|&n| n > 0), "{:?}", paths.get());
}
