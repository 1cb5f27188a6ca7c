//! Random cases for the samplers, checked against the reference: see `src/property`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Err(finding) = sortless::property::samplers(bytes) {
        panic!("{finding}");
    }
});
