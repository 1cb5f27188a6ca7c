//! Random cases for preprocessing of logits, checked against plain loops: see `src/property`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Err(finding) = sortless::property::process(bytes) {
        panic!("{finding}");
    }
});
