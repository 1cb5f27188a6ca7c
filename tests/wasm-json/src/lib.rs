//! The JSON protocol behind a C ABI. A host writes a request to where `alloc` says, calls a function with its address
//! and length, reads the response at `response_address`, `response_length`, and frees the request.

use sortless::json::{self, JsonError};
use std::cell::RefCell;

thread_local! {
    static RESPONSE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Memory for a request of this length.
#[unsafe(no_mangle)]
pub extern "C" fn alloc(len: usize) -> *mut u8 {
    Box::into_raw(vec![0u8; len].into_boxed_slice()).cast()
}

/// Frees what `alloc` gave.
///
/// # Safety
/// `address` came from `alloc` with the same `len` and was not freed before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(address: *mut u8, len: usize) {
    let slice = core::ptr::slice_from_raw_parts_mut(address, len);
    // SAFETY: it is the box that `alloc` leaked, by the caller's promise.
    drop(unsafe { Box::from_raw(slice) });
}

/// Keeps the response; 1 for a good one, 0 for an error's text.
///
/// # Safety
/// `len` bytes at `address` are readable and initialised.
unsafe fn run(
    f: impl Fn(&[u8]) -> Result<String, JsonError>,
    address: *const u8,
    len: usize,
) -> u32 {
    // SAFETY: by the caller's promise; nothing writes to it while this runs.
    let request = unsafe { core::slice::from_raw_parts(address, len) };
    let (ok, text) = match f(request) {
        Ok(text) => (1, text),
        Err(error) => (0, error.to_string()),
    };
    RESPONSE.with(|response| *response.borrow_mut() = text);
    ok
}

/// [`json::init`].
///
/// # Safety
/// `len` bytes at `address` are readable and initialised.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn init(address: *const u8, len: usize) -> u32 {
    // SAFETY: the same promise.
    unsafe { run(json::init, address, len) }
}

/// [`json::step`].
///
/// # Safety
/// `len` bytes at `address` are readable and initialised.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn step(address: *const u8, len: usize) -> u32 {
    // SAFETY: the same promise.
    unsafe { run(json::step, address, len) }
}

/// Where the last response is.
#[unsafe(no_mangle)]
pub extern "C" fn response_address() -> *const u8 {
    RESPONSE.with(|response| response.borrow().as_ptr())
}

/// How long the last response is.
#[unsafe(no_mangle)]
pub extern "C" fn response_length() -> usize {
    RESPONSE.with(|response| response.borrow().len())
}
