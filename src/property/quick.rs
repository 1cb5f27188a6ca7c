//! A few thousand cases of each property from fixed seeds, as unit tests: one crate to build and seconds to run, which is
//! what mutation testing needs (`.cargo/mutants.toml`). Rows are short here ([`LONGEST`](super::LONGEST)).

use super::bytes::Random;

/// Runs a property on byte strings of the lengths that `tests/property.rs` uses, too.
fn run(cases: u64, check: fn(&[u8]) -> Result<(), String>) {
    for seed in 0..cases {
        let mut random = Random(seed << 32);
        let longest = [40, 120, 600][random.below(3)];
        let bytes: Vec<u8> = (0..random.below(longest)).map(|_| random.u64() as u8).collect();
        if let Err(finding) = check(&bytes) {
            panic!("{finding}");
        }
    }
}

#[test]
fn kernels() {
    run(1000, super::kernels);
}

#[test]
fn samplers() {
    run(800, super::samplers);
}

#[test]
fn gaps() {
    run(40, |bytes| super::gaps(bytes).map(drop));
}

#[test]
fn batches() {
    run(400, super::batch);
}

#[test]
fn mirostat() {
    run(600, super::mirostat);
}

#[test]
fn process() {
    run(1500, super::process);
}

#[cfg(feature = "json")]
#[test]
fn json() {
    run(500, |bytes| super::json(&[&[0], bytes].concat()));
}
