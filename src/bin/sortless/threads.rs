//! Threads, and a scratch for each.

use crate::failure::Failure;
use rayon::{ThreadPool, ThreadPoolBuilder};
use sortless::Scratch;
use std::cell::RefCell;

/// More threads than this help nobody, and starting them would fail in worse ways.
const MOST: usize = 4096;

/// A pool of that many threads, or as many as there are processors.
pub fn pool(threads: Option<usize>) -> Result<ThreadPool, Failure> {
    let count = threads.unwrap_or(0);
    if count > MOST {
        return Err(Failure::new(format_args!("--threads {count} is more than {MOST}")));
    }
    let pool = ThreadPoolBuilder::new().num_threads(count).build();
    pool.map_err(|error| Failure::new(format_args!("--threads {count}: {error}")))
}

/// Calls `f` with the calling thread's own scratch.
pub fn with_scratch<T>(f: impl FnOnce(&mut Scratch) -> T) -> T {
    thread_local! {
        static SCRATCH: RefCell<Scratch> = RefCell::default();
    }
    SCRATCH.with(|own| match own.try_borrow_mut() {
        Ok(mut scratch) => f(&mut scratch),
        // Only if `f` calls this again.
        Err(_) => f(&mut Scratch::new()),
    })
}
