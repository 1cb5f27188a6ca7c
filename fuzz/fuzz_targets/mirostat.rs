//! Random cases for Mirostat sessions, checked against the reference: see `src/property`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Err(finding) = sortless::property::mirostat(bytes) {
        panic!("{finding}");
    }
});
