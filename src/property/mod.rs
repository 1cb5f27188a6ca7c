//! The crate's claim, once, in a form that tests and fuzz targets share: a case is built from any byte string, biased
//! toward hard ones, and everything fast is compared with the [`reference`](crate::reference).
//!
//! Each function here takes bytes and gives `Err` with the whole case where anything differs. Nothing here is part of the
//! crate's interface.

mod batch;
mod bytes;
mod kernels;
mod params;
mod row;
mod sample;

pub use batch::batch;
pub use kernels::kernels;
pub use sample::{gaps, samplers};

/// A finding with the bytes that lead to it.
fn describe(error: String, bytes: &[u8]) -> String {
    let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
    format!("{error}\nbytes: {hex}")
}
