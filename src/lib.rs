//! Exact, deterministic token sampling from a row of logits, without sorting the vocabulary.

mod batch;
pub mod diagnostics;
mod distribution;
mod element;
mod error;
mod filter;
#[doc(hidden)]
pub mod floors;
mod fraction;
mod full;
mod head;
#[cfg(feature = "json")]
pub mod json;
pub mod kernels;
mod level;
mod measure;
pub mod mirostat;
#[doc(hidden)]
pub mod oracle;
mod params;
mod park_miller;
mod pick;
mod prepared;
pub mod process;
mod rank;
pub mod reference;
mod report;
pub mod rng;
mod row;
mod sampler;
mod select;
#[doc(hidden)]
pub mod shapes;
mod source;
mod weights;

pub use batch::{Batch, Rows};
pub use distribution::{draw_from, normalize_weights, probabilities, surprise};
pub use element::Element;
pub use error::{Error, NotFinite, Number};
pub use level::Level;
pub use params::SamplingParams;
pub use park_miller::ParkMiller;
pub use pick::{Alternative, Pick, Report};
pub use prepared::PreparedRow;
pub use rng::Draws;
#[doc(hidden)]
pub use sampler::{Path, Paths};
pub use sampler::{Sampler, Scratch};

/// The longest row, `2^20` tokens: the sum of that many masses still fits 64 bits.
pub const MAX_VOCAB: usize = 1 << 20;
