//! The crate's claim, once, in a form that tests and fuzz targets share: a case is built from any byte string, biased
//! toward hard ones, and everything fast is compared with the [`reference`](crate::reference).
//!
//! Each function here takes bytes and gives `Err` with the whole case where anything differs. Nothing here is part of the
//! crate's interface.

mod batch;
mod bytes;
#[cfg(feature = "json")]
mod json;
mod kernels;
mod mirostat;
mod params;
mod process;
#[cfg(test)]
mod quick;
mod row;
mod sample;

use bytes::Bytes;

pub use batch::batch;
#[cfg(feature = "json")]
pub use json::json;
pub use kernels::kernels;
pub use mirostat::mirostat;
pub use process::process;
pub use sample::{gaps, samplers};

/// Reads a case and checks it.
type Case<T> = fn(&mut Bytes<'_>) -> Result<T, String>;

/// Checks the case that these bytes say, which is one of these kinds.
fn check<T, const N: usize>(bytes: &[u8], kinds: [Case<T>; N]) -> Result<T, String> {
    let mut b = Bytes::new(bytes);
    kinds[b.below(N)](&mut b).map_err(|error| describe(error, bytes))
}

/// The longest row of a case; unit tests leave the longer ones to `tests/property.rs` and the fuzz targets.
const LONGEST: usize = if cfg!(test) { 4096 } else { crate::MAX_VOCAB };

/// A finding with the bytes that lead to it.
fn describe(error: String, bytes: &[u8]) -> String {
    let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
    format!("{error}\nbytes: {hex}")
}

/// Runs in a pool of this many threads; 0 or no feature `rayon`: wherever it is.
fn on_threads<T: Send>(threads: usize, f: impl FnOnce() -> T + Send) -> T {
    #[cfg(feature = "rayon")]
    {
        use std::sync::OnceLock;
        static POOLS: [OnceLock<Option<rayon::ThreadPool>>; 4] = [const { OnceLock::new() }; 4];
        if let Some(pool) = threads.checked_sub(1).and_then(|i| POOLS.get(i)) {
            let build = || rayon::ThreadPoolBuilder::new().num_threads(threads).build().ok();
            if let Some(pool) = pool.get_or_init(build) {
                return pool.install(f);
            }
        }
    }
    #[cfg(not(feature = "rayon"))]
    let _ = threads;
    f()
}
