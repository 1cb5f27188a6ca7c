//! Random cases for the JSON protocol, checked against the session itself: see `src/property`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Err(finding) = sortless::property::json(bytes) {
        panic!("{finding}");
    }
});
